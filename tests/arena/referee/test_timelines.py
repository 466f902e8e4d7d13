"""The timelines in `time.cases`: bots without sockets, and a clock that the steps set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.engine.verdict import Finding
from protocol.messages import Ask, Ending, Limits, Match, Mechanism, Ready

if TYPE_CHECKING:
    from arena.engine.match import MatchResult
    from arena.referee.bot_session import BotSession
    from arena.referee.live_match import LiveMatch
    from protocol.messages import Verdict
    from tests.support.fake_bots import FakeArena, FakeBot, FakeBotProcess

LIMITS = Limits(decision_ms=1000, bank_ms=3000, hard_ms=5000, start_ms=2000, grace_ms=1000)
FULL_MS = LIMITS.bank_ms


def cases() -> list[Any]:
    text = Path(__file__).with_name("time.cases").read_text(encoding="utf-8")
    paragraphs = re.split(r"^== ", text, flags=re.MULTILINE)[1:]
    named = (paragraph.partition("\n") for paragraph in paragraphs)
    return [pytest.param(steps, id=title.replace(" ", "_")) for title, _, steps in named]


@pytest.mark.parametrize("steps", cases())
def test_J7_a_timeline(house: FakeArena, steps: str) -> None:
    Timeline(house).play(steps)


class Timeline:
    """A house whose bots are made when they are first named."""

    def __init__(self, house: FakeArena) -> None:
        self._house = house
        self._bots: dict[str, FakeBot] = {}
        self._tables: list[LiveMatch] = []
        self._asks: dict[str, dict[str, Ask]] = {}  # by bot and match, the latest at the end
        self._invitations: list[tuple[FakeBot, Match]] = []
        self._next_probes: dict[str, float | None] = {}

    def play(self, steps: str) -> None:
        for line in steps.splitlines():
            if line.startswith("#"):
                continue
            times, _, rest = re.fullmatch(r"(\d+)?( times: )?(.*)", line).groups("")  # type: ignore[union-attr]
            for _ in range(int(times or 1)):
                for step in filter(None, rest.split(" · ")):
                    self._step(step)

    def _step(self, step: str) -> None:
        first, _, rest = step.partition(" ")
        if do := getattr(self, f"do_{first}", None):
            do(*([rest] if first in ("says", "by", "advises") else rest.split()))
        else:
            verb, _, rest = rest.partition(" ")
            getattr(self, f"bot_{verb}")(self._bot(first), rest)

    def _bot(self, name: str) -> FakeBot:
        if name not in self._bots:
            self.do_bot(name)
        return self._bots[name]

    def _process(self, bot: FakeBot) -> FakeBotProcess:
        assert bot.process is not None, "only launched bots have processes"
        return bot.process

    @property
    def _ended(self) -> tuple[MatchResult, Verdict]:
        [(_, result, verdict)] = self._house.results
        assert verdict is not None
        return result, verdict

    # --- what happens ---

    def do_bot(self, name: str, tables: str = "1") -> None:
        self._bots[name] = self._house.bot(name, tables=int(tables))

    def do_launched(self, name: str, tables: str = "1") -> None:
        self._bots[name] = self._house.launched(name, tables=int(tables))

    def do_practice(self) -> None:
        self._house.referee.practice = True

    def do_unmetered(self, name: str) -> None:
        self._bot(name).player.is_metered = False

    def do_link(self, name: str, round_trip_ms: str) -> None:
        for _ in range(3):
            self._bot(name).player.link.measured(float(round_trip_ms))

    def do_invite(self, *words: str) -> None:
        changed = {
            name: int(value) for name, _, value in (w.partition("=") for w in words) if value
        }
        bots = [self._bot(word) for word in words if "=" not in word]
        game = "ace_king_queen" if len(bots) == 2 else "three_card_poker"
        limits = msgspec.structs.replace(LIMITS, **changed)
        self._tables.append(self._house.open(*bots, game=game, limits=limits))

    def do_read(self, *names: str) -> None:
        for name in names:
            bot = self._bot(name)
            asks = self._asks.setdefault(name, {})
            for message in bot.reads():
                if isinstance(message, Match):
                    self._invitations.append((bot, message))
                elif isinstance(message, Ask):
                    asks.pop(message.match, None)
                    asks[message.match] = message

    def do_sit(self, *names: str) -> None:
        self.do_read(*names)
        waiting, self._invitations = self._invitations, []
        for bot, invitation in waiting:
            self._house.say(bot, Ready(invitation.match, "nonce"))

    def do_table(self, *words: str) -> None:
        names = list(dict.fromkeys(word for word in words if "=" not in word))
        self.do_invite(*words)
        self.do_sit(*names)
        self.do_read(*names)

    def do_wait(self, seconds: str) -> None:
        self._house.now += float(seconds)

    def do_pass(self, seconds: str) -> None:
        self._house.passes(float(seconds))

    def do_stall(self, seconds: str) -> None:
        self._house.held_up(float(seconds))

    def do_tick(self) -> None:
        self._house.referee.tick()

    def do_forget(self) -> None:
        self._house.results.clear()

    def do_silent(self, name: str) -> None:
        """Its machine acknowledges nothing; of that the gateway takes notice like this."""

        def heard(player: BotSession, now: float) -> None:
            if player.loss is not None and player.loss.is_silent:
                player.connection_regained(now, 0.0)

        def lost(player: BotSession, since: float) -> None:
            player.connection_lost(since, 0.0)

        self._house.referee.on_lost = lost
        self._house.referee.on_heard = heard
        self._bot(name).wire.silent = self._house.now

    def do_heard(self, name: str) -> None:
        self._bot(name).wire.silent = None

    def do_void(self) -> None:
        self._house.referee.void(self._tables[0], "it was stopped")

    def do_probe(self, name: str) -> None:
        """Its link is looked at, and it may be pinged."""
        now = self._house.now
        lag_s = self._house.referee.lag.total_s(now)
        self._next_probes[name] = self._bot(name).player.link_probe.probe(now, lag_s)

    def do_replies(self, name: str) -> None:
        bot = self._bot(name)
        bot.player.link_probe.ponged(bot.wire.pings.pop(), self._house.now)

    def do_pong(self, name: str, round_trip_s: str) -> None:
        """It is pinged, and answers."""
        self.do_probe(name)
        self.do_here(name)
        self.do_wait(round_trip_s)
        self.do_replies(name)

    # --- what a bot does ---

    def bot_says(self, bot: FakeBot, text: str) -> None:
        """Answer, by default its newest question with the first legal answer."""
        value, _, table = f" {text}".partition(" at ")
        asks = self._asks[bot.player.name]
        if table:
            match = f"{self._tables[int(table) - 1].id}."
            [ask] = [ask for ask in asks.values() if ask.match.startswith(match)]
        else:
            ask = [*asks.values()][-1]
        self._house.answer(bot, ask, value.strip().strip('"') or None)

    def bot_answers(self, bot: FakeBot, text: str) -> None:
        """The same, and then all read what they are asked."""
        self.bot_says(bot, text)
        self.do_read(*self._bots)

    def bot_goes(self, bot: FakeBot, _: str) -> None:
        bot.goes()

    def bot_comes(self, bot: FakeBot, _: str) -> None:
        bot.comes_back()

    def bot_offends(self, bot: FakeBot, kind: str) -> None:
        finding = Finding(kind=Ending(kind), text="told so", mechanism=Mechanism.WIRE)
        self._house.referee.offence(bot.player, finding)

    def bot_computes(self, bot: FakeBot, seconds: str) -> None:
        self._house.computes(bot, float(seconds))

    def bot_burns(self, bot: FakeBot, seconds: str) -> None:
        """Many cores have been at work for it, in no time."""
        self._process(bot).used_ms += float(seconds) * 1000

    def bot_lacks(self, bot: FakeBot, a_core: str) -> None:
        """Time passes in which it is ready to run, and others have the cores."""
        end = self._house.now + float(a_core.split()[-1])
        while self._house.now < end:
            step = min(0.5, end - self._house.now)
            self._house.passes(step)
            self._process(bot).overbooked_ms += step * 1000

    def bot_has(self, bot: FakeBot, waited: str) -> None:
        self._process(bot).overbooked_ms += float(waited.split()[-1]) * 1000

    # --- what is so ---

    def do_goes(self, _: str) -> None:
        assert self._house.results == []

    def do_ends(self, kind: str, name: str, *fields: str) -> None:
        result, verdict = self._ended
        assert (verdict.kind, verdict.bot) == (kind, name)
        assert verdict.text == result.termination.text
        for field, _, value in (field.partition("=") for field in fields):
            is_so = getattr(verdict, field)
            number, _, about = value.partition("~")
            if value == "None":
                assert is_so is None, field
            else:
                assert is_so == pytest.approx(float(number), abs=float(about or 0.01)), field

    def do_winner(self, seat: str) -> None:
        assert self._ended[0].winner == int(seat)

    def do_says(self, text: str) -> None:
        assert self._ended[1].text == text

    def do_by(self, mechanism: str) -> None:
        assert self._ended[1].mechanism == mechanism

    def do_advises(self, text: str) -> None:
        assert text in self._ended[1].advice

    def do_bank(self, name: str, bank_ms: str, *at: str) -> None:
        chairs = [*self._bot(name).player.chairs.values()]
        if at:
            chairs = [chair for chair in chairs if chair.table is self._tables[int(at[1]) - 1]]
        [chair] = chairs
        self._is_left(chair.clock.bank_ms, bank_ms)

    def do_banks(self, *banks_ms: str) -> None:
        for chair, bank_ms in zip(self._tables[0].chairs, banks_ms, strict=True):
            self._is_left(chair.clock.bank_ms, bank_ms)

    def _is_left(self, left_ms: int, bank_ms: str) -> None:
        """A bank counts whole milliseconds, and the seconds of these timelines are not exact."""
        assert left_ms == pytest.approx(int(bank_ms), abs=int(int(bank_ms) != FULL_MS))

    def do_shows(self, name: str, bank_ms: str) -> None:
        self._is_left([*self._asks[name].values()][-1].bank_ms, bank_ms)

    def do_asked(self, name: str, kind: str) -> None:
        assert [*self._asks[name].values()][-1].question.kind == kind

    def do_pings(self, name: str, count: str) -> None:
        assert len(self._bot(name).wire.pings) == int(count)

    def do_there(self, name: str) -> None:
        assert self._bot(name).player.loss is None

    def do_floor(self, name: str, floor_ms: str) -> None:
        assert self._bot(name).player.link.floor_ms == pytest.approx(float(floor_ms))

    def do_next(self, name: str, in_s: str) -> None:
        assert self._next_probes[name] == pytest.approx(self._house.now + float(in_s))

    def do_here(self, name: str) -> None:
        assert self._next_probes[name] is not None

    def do_gone(self, name: str) -> None:
        assert self._next_probes[name] is None
