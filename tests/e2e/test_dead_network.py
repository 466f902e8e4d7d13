"""A network that drops packets without a reset, and machines that sleep (J7): lines that are cut.

All play at the same time, against one arena. The lines are cut when every bot waits.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.network_namespace import NamespaceNetwork
from tests.support.plain_bot import IMPATIENT, KEEPALIVE, PlainBot
from tests.support.served_arena import REAL, ServedArena, outcomes_of, run_of

if TYPE_CHECKING:
    from tests.support.served_arena import PlayedCases

pytestmark = [pytest.mark.e2e, pytest.mark.needs("root", "ip")]

LIMITS = {"decision_ms": 500, "bank_ms": 4_000, "hard_ms": 4_000, "grace_ms": 10_000}
# Longer than a decision may take and shorter than the grace, even if the kernel's next attempt
# comes late; longer than the grace and the seconds until an unanswered ping is noticed.
AWAY_S, OUT_S = 6.0, 15.0
if REAL:
    LIMITS = {"decision_ms": 1_000, "bank_ms": 20_000}
    LIMITS |= {"hard_ms": 15_000, "grace_ms": 30_000}
    AWAY_S, OUT_S = 20.0, 35.0
SOON_S = 0.5  # from the questions to the cut: an unanswered ping must come long before `hard_ms`
THINK_S = 3.5
LONG: Any = {"rounds": 100_000, "stake": 1_000_000}


class Lines:
    """Two lines that are cut, `short` and `long`, and `desk`, which is not; with their cases."""

    def __init__(self, network: NamespaceNetwork) -> None:
        self.network = network
        self.asleep = asyncio.Event()  # the last bot that is asked before the cut has been
        self.soon = asyncio.Event()  # both lines are about to be cut
        self.cut = asyncio.Event()
        self.mended = asyncio.Event()  # the short one

    async def conduct(self, arena: ServedArena) -> None:
        """Cut both lines, and mend them."""
        await self.asleep.wait()
        self.soon.set()
        await asyncio.sleep(SOON_S)
        self.network.cut("short")
        self.network.cut("long")
        self.cut.set()
        await asyncio.sleep(AWAY_S)
        self.network.mend("short")
        self.mended.set()
        await asyncio.sleep(OUT_S - AWAY_S)
        self.network.mend("long")

    async def answers_later(self, arena: ServedArena, name: str) -> Any:
        """Answers when packets arrive again: the next question."""
        return await self.answers(arena, name, self.mended)

    async def answers_meanwhile(self, arena: ServedArena, name: str) -> Any:
        """Answers while packets are lost: the next question."""
        return await self.answers(arena, name, self.cut, THINK_S)

    async def answers(
        self, arena: ServedArena, name: str, when: asyncio.Event, later_s: float = 0.0
    ) -> Any:
        """Is asked just before the cut; neither end closes the connection."""
        hand = await arena.bot(name, "short")
        match = await hand.hears("match")
        await self.soon.wait()
        await hand.say(type="ready", match=match["match"], nonce="n")
        ask = await hand.hears("ask")
        await when.wait()
        await asyncio.sleep(later_s)
        return await hand.answers_and_finishes(ask)

    async def resumes(self, arena: ServedArena, name: str) -> PlainBot:
        """Is asked just before the cut, and closes by its keepalive; later it comes back."""
        await self.soon.wait()
        bot = self.impatient(arena, name, "three_card_poker")

        async def hold(ask: Any) -> None:
            await self.mended.wait()

        bot.before_answer = hold
        await bot.play_one()
        return bot

    async def between_matches(self, arena: ServedArena, name: str) -> PlainBot:
        """Closes by its keepalive while it plays nothing."""
        bot = self.impatient(arena, name, "ace_king_queen")
        await bot.play_one()
        return bot

    def impatient(self, arena: ServedArena, name: str, game: str) -> PlainBot:
        return PlainBot(
            *(arena.url("short"), name, [game]),
            dial=lambda: arena.dial("short"),
            open_timeout=3,
            **IMPATIENT,
        )

    async def the_other(self, arena: ServedArena, name: str) -> None:
        """The opponent of `between_matches`, which comes later."""
        await self.mended.wait()
        hand = await arena.bot(name, "desk", "ace_king_queen")
        await hand.play()

    async def sleeps(self, arena: ServedArena, name: str) -> None:
        """A laptop that is closed: its program and its kernel stand still."""
        process = await arena.frozen(name, "long")
        self.asleep.set()
        await self.cut.wait()
        await asyncio.sleep(OUT_S)
        process.send_signal(signal.SIGCONT)

    async def stands_still(self, arena: ServedArena, name: str) -> None:
        """Its program is stopped for as long, and its kernel goes on."""
        await self.cut.wait()
        process = await arena.frozen(name, "desk")
        await asyncio.sleep(AWAY_S)
        process.send_signal(signal.SIGCONT)


RUNS = [
    *map(run_of, ("answers_later", "answers_meanwhile", "resumes")),
    *(run_of(name, settings=LONG) for name in ("sleeps", "stands_still")),
    run_of(*("between_matches", "the_other"), game="ace_king_queen", settings={"hands": 20}),
]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> PlayedCases:
    folder = tmp_path_factory.mktemp("network")
    with NamespaceNetwork("short", "long", "desk") as network:
        lines = Lines(network)
        cases = {
            case.__name__: case
            for case in (
                *(lines.answers_later, lines.answers_meanwhile, lines.resumes),
                *(lines.between_matches, lines.the_other),
                *(lines.sleeps, lines.stands_still),
            )
        }
        arena = ServedArena(folder, LIMITS, RUNS, network)
        return outcomes_of(arena, cases, lines.conduct)


@pytest.mark.parametrize("case", ["answers_later", "answers_meanwhile"])
def test_J7_an_answer_counts_after_an_outage_in_which_nobody_closed(
    outcome: PlayedCases, case: str
) -> None:
    assert outcome.words(case) == []
    assert outcome.of(case)["type"] == "ask"


@pytest.mark.parametrize("case", ["resumes", "between_matches"])
def test_J7_a_client_whose_keepalive_closed_comes_back(outcome: PlayedCases, case: str) -> None:
    assert outcome.words(case) == []
    bot = outcome.of(case)
    assert any(KEEPALIVE in loss for loss in bot.losses)
    assert bot.forgotten == 0


def test_J7_a_laptop_that_sleeps_for_longer_than_its_grace_is_disconnected_once(
    outcome: PlayedCases,
) -> None:
    outcome.of("sleeps")

    assert outcome.words("sleeps") == ["disconnect"], outcome.said


def test_J7_who_stands_still_on_a_machine_that_does_not_is_out_of_time(
    outcome: PlayedCases,
) -> None:
    outcome.of("stands_still")

    assert outcome.words("stands_still") == ["timeout"]


def test_nobody_else_is_out(outcome: PlayedCases) -> None:
    outcome.of("the_other")

    assert outcome.words("the_other") == []
    assert "Traceback" not in outcome.said
