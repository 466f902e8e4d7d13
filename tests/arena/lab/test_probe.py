"""Made-up matches that are put to bots in this process, and to programs: what is noted, and what ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import arena
from arena.games.analysis import Analyser, Analysis, ProbedMatch, ProbeMatch, SeatDecision
from arena.games.catalogue import GAMES, competition_settings, game_named
from arena.games.rules import AskSeat, Scoreboard
from arena.games.verdict import Finding
from arena.lab.probe import ProbeFailed, analyse_here, begin, play_probe
from arena.lab.probed_programs import names_of, script_of
from arena.lab.seat_referee import BotFailed
from protocol.ace_king_queen import AceKingQueenSettings, Open
from protocol.errors import NoAnalysis
from protocol.messages import Ask, Ending, Match, Mechanism, Over
from protocol.strategy import Strategy, find, house_bots
from tests.support.answering import Answering
from tests.support.refereed_bot import RefereedBot
from tests.support.sample_database import SHORT

GAME = game_named("ace_king_queen")
DEALS = [("K", "Q"), ("A", "K"), ("Q", "A"), ("A", "Q")]


def putting(*probes: ProbeMatch) -> Analyser:
    """An analysis that has the number of answers as its result."""
    asked = 0
    for probe in probes:
        played = yield probe
        asked += len(played.decisions)
    return Analysis(figures=(), asked=asked)


def probe(**more: Any) -> ProbeMatch:
    others: tuple[Strategy, ...] = (find("ace_king_queen", "honest")(),)
    return ProbeMatch(
        **{"settings": AceKingQueenSettings(hands=4), "others": others, "decks": DEALS, **more}
    )


@pytest.mark.parametrize("seat", [0, 1])
def test_a_match_is_played_as_any_other_and_the_bots_answers_are_noted(seat: int) -> None:
    played: list[ProbedMatch] = []
    bot, other = find("ace_king_queen", "bluffer")(), find("ace_king_queen", "honest")()
    seats = [other, other]
    seats[seat] = bot
    same = arena.play("ace_king_queen", seats, settings={"hands": 4}, decks=DEALS)

    analysis = analyse_here(GAME, putting(probe(seat=seat)), [bot], played.append)

    [match] = played
    assert match.scores == same.scores
    assert tuple(match.answers) == same.record.answers
    assert len(match.decisions) >= 2, "it bets or checks in every second hand"
    assert analysis.asked == len(match.decisions)
    for decision in match.decisions:
        assert bot.decide(decision.question) == decision.answer


def test_each_match_goes_to_the_bot_that_it_is_for() -> None:
    bots = [Answering(), Answering(), Answering()]

    analyse_here(GAME, putting(probe(bot=2), probe(), probe(bot=2, seat=1)), bots)

    assert [bot.resets for bot in bots] == [1, 0, 2]
    assert len(bots[2].heard) == 8  # every hand ends with news


def test_without_decks_the_cards_come_from_the_seed() -> None:
    played: list[ProbedMatch] = []
    probes = [probe(decks=None, seed=seed) for seed in (7, 7, 8)]

    analyse_here(GAME, putting(*probes), [Answering()], played.append)

    cards = [[getattr(one.question, "card", None) for one in match.decisions] for match in played]
    assert cards[0] == cards[1] != cards[2]


def test_an_analysis_may_ask_by_rules_of_its_own() -> None:
    def rules(settings: Any, deals: Iterator[Any], board: Scoreboard) -> Any:
        answer = yield AskSeat(0, Open(1, next(deals)[0]))
        board.scores[0] = 5 if answer == "bet" else 6

    played: list[ProbedMatch] = []

    analyse_here(GAME, putting(probe(rules=rules)), [Answering()], played.append)

    assert (played[0].scores, len(played[0].decisions)) == ((5, 0), 1)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda question: "raise", r'answered "raise" to open; legal: bet, check; answer .+'),
        (lambda question: 1 // 0, r"raised ZeroDivisionError: .+ at .+test_probe\.py:\d+"),
    ],
)
def test_an_offence_ends_the_analysis(answer: Callable[[Any], object], text: str) -> None:
    bots = [Answering(), Answering(answer)]

    with pytest.raises(ProbeFailed, match=f"^{text}$") as failed:
        analyse_here(GAME, putting(probe(), probe(bot=1), probe()), bots)

    assert failed.value.bot == 1
    assert bots[0].resets == 1


def test_an_analysis_that_is_refused_in_the_middle() -> None:
    def refusing() -> Analyser:
        yield probe()
        raise NoAnalysis("that is enough")

    with pytest.raises(NoAnalysis, match="that is enough"):
        analyse_here(GAME, refusing(), [Answering()])


def seeded(game: str, seed: str) -> Strategy:
    house = house_bots(game)
    strategy: Strategy = house["random" if "random" in house else next(iter(house))]()
    if callable(seeding := getattr(strategy, "seed", None)):
        seeding(seed)
    return strategy


def made_up(game: str, seat: int = 0, seed: int = 5) -> ProbeMatch:
    rules = GAMES[game]
    others = tuple(seeded(game, f"other:{number}") for number in range(rules.seats - 1))
    settings = competition_settings(rules, SHORT[game])
    return ProbeMatch(settings=settings, seat=seat, others=others, seed=seed)


class ProbedBot(RefereedBot):
    """A bot that a strategy plays for."""

    def __init__(self, strategy: Strategy) -> None:
        super().__init__()
        self.messages: list[Any] = []
        self._strategy = strategy

    def plays(self, game: str, probe: ProbeMatch) -> ProbedMatch:
        outcome = self.begins(game, probe)
        self.goes_on()
        assert outcome.result() is None
        return ProbedMatch(self.decisions, self.match.answers, self.match.scores)

    def begins(self, game: str, probe: ProbeMatch) -> asyncio.Future[BotFailed | None]:
        self.match, self.decisions = begin(GAMES[game], probe), list[SeatDecision]()
        script = script_of(self.match, probe, self.decisions)
        id_, names = f"m-{len(self.messages)}", names_of(probe, "ann")
        return self.referee.put(self.bot.player, id_, self.match, probe.seat, names, script)

    def goes_on(self) -> None:
        """Let the strategy answer until no more messages come."""
        while messages := self.reads():
            self.messages += messages
            for message in messages:
                if isinstance(message, Match):
                    self._strategy.reset()
                    continue
                for news in message.news:
                    self._strategy.hear(news)
                if isinstance(message, Ask):
                    self.answers(message, self._strategy.decide(message.question))


@pytest.mark.parametrize("game", sorted(SHORT))
@pytest.mark.parametrize("is_last", [False, True])
async def test_a_program_is_asked_and_told_what_an_object_is(game: str, is_last: bool) -> None:
    seat = GAMES[game].seats - 1 if is_last else 0
    here = play_probe(GAMES[game], made_up(game, seat), seeded(game, "bot"))

    there = ProbedBot(seeded(game, "bot")).plays(game, made_up(game, seat))

    assert there == here
    assert there.decisions


async def test_one_bot_plays_match_after_match() -> None:
    game = "ace_king_queen"
    bot = ProbedBot(seeded(game, "bot"))
    same = seeded(game, "bot")

    there = [bot.plays(game, made_up(game, number % 2, seed=number)) for number in range(3)]
    here = [play_probe(GAMES[game], made_up(game, n % 2, seed=n), same) for n in range(3)]

    assert there == here
    invitations = [message for message in bot.messages if isinstance(message, Match)]
    assert [one.seats for one in invitations] == [
        ("ann", "probe-1"),
        ("probe-1", "ann"),
        ("ann", "probe-1"),
    ]
    assert len({one.match for one in invitations}) == 3
    assert not bot.bot.player.chairs


async def test_made_up_cards_are_not_committed_to() -> None:
    bot = ProbedBot(seeded("ace_king_queen", "bot"))

    bot.plays("ace_king_queen", made_up("ace_king_queen"))

    assert bot.messages[0].commitment == ""
    over = bot.messages[-1]
    assert isinstance(over, Over)
    assert over.reveal is None


async def test_a_bot_that_has_gone_between_two_matches_is_not_asked_again() -> None:
    bot = ProbedBot(seeded("ace_king_queen", "bot"))
    bot.plays("ace_king_queen", made_up("ace_king_queen"))
    crash = Finding(
        kind=Ending.CRASH, text="crashed: exit status 3", mechanism=Mechanism.EXIT, stderr="oh"
    )

    bot.bot.player.leaving = True
    bot.referee.offence(bot.bot.player, crash)
    outcome = bot.begins("ace_king_queen", made_up("ace_king_queen"))

    assert outcome.result() == BotFailed("crashed: exit status 3", stderr="oh")


async def test_a_fault_of_the_analysis_is_raised_where_it_is_awaited() -> None:
    def wrong(question: Any) -> object:
        raise RuntimeError("a script of the analysis is wrong")

    script = made_up("ace_king_queen", seat=1)
    broken = ProbeMatch(settings=script.settings, seat=1, others=(Answering(wrong),), seed=5)
    bot = ProbedBot(seeded("ace_king_queen", "bot"))
    outcome = bot.begins("ace_king_queen", broken)
    bot.goes_on()

    with pytest.raises(RuntimeError, match="a script of the analysis is wrong"):
        outcome.result()
