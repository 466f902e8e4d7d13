"""Made-up matches that are put to bots in this process: what is noted, and what ends an analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import arena
from arena.engine.analysis import Analyser, Analysis, ProbedMatch, ProbeMatch
from arena.engine.rules import AskSeat, Scoreboard
from arena.games import game_named
from arena.lab.probe import ProbeFailed, analyse_here
from protocol.ace_king_queen import AceKingQueenSettings, Open
from protocol.errors import NoAnalysis
from protocol.strategy import Strategy, find
from protocol.vocabulary import Question

GAME = game_named("ace_king_queen")
DEALS = [("K", "Q"), ("A", "K"), ("Q", "A"), ("A", "Q")]


class AnswersBy:
    """Answers by a function, and counts its resets."""

    game = "ace_king_queen"

    def __init__(
        self, answer: Callable[[Any], object] = lambda question: question.legal[0]
    ) -> None:
        self.answer, self.resets = answer, 0
        self.heard: list[Any] = []

    def decide(self, question: Question[Any]) -> object:
        return self.answer(question)

    def hear(self, news: Any) -> None:
        self.heard.append(news)

    def reset(self) -> None:
        self.resets += 1


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


def test_the_bot_is_reset_before_every_match_and_hears_what_its_seat_may_know() -> None:
    bot = AnswersBy()

    analyse_here(GAME, putting(probe(), probe(seat=1)), [bot])

    assert bot.resets == 2
    assert len(bot.heard) == 8  # every hand ends with news


def test_each_match_goes_to_the_bot_that_it_is_for() -> None:
    bots = [AnswersBy(), AnswersBy(), AnswersBy()]

    analyse_here(GAME, putting(probe(bot=2), probe(), probe(bot=2)), bots)

    assert [bot.resets for bot in bots] == [1, 0, 2]


def test_without_decks_the_cards_come_from_the_seed() -> None:
    played: list[ProbedMatch] = []
    probes = [probe(decks=None, seed=seed) for seed in (7, 7, 8)]

    analyse_here(GAME, putting(*probes), [AnswersBy()], played.append)

    cards = [[getattr(one.question, "card", None) for one in match.decisions] for match in played]
    assert cards[0] == cards[1] != cards[2]


def test_an_analysis_may_ask_by_rules_of_its_own() -> None:
    def rules(settings: Any, deals: Iterator[Any], board: Scoreboard) -> Any:
        answer = yield AskSeat(0, Open(1, next(deals)[0]))
        board.scores[0] = 5 if answer == "bet" else 6

    played: list[ProbedMatch] = []

    analyse_here(GAME, putting(probe(rules=rules)), [AnswersBy()], played.append)

    assert (played[0].scores, len(played[0].decisions)) == ((5, 0), 1)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda question: "raise", r'answered "raise" to open; legal: bet, check'),
        (lambda question: 1 // 0, r"raised ZeroDivisionError: .+ at .+test_probe\.py:\d+"),
    ],
)
def test_an_offence_ends_the_analysis(answer: Callable[[Any], object], text: str) -> None:
    bots = [AnswersBy(), AnswersBy(answer)]

    with pytest.raises(ProbeFailed, match=f"^{text}$") as failed:
        analyse_here(GAME, putting(probe(), probe(bot=1), probe()), bots)

    assert failed.value.bot == 1
    assert bots[0].resets == 1


def test_an_analysis_that_is_refused_in_the_middle() -> None:
    def refusing() -> Analyser:
        yield probe()
        raise NoAnalysis("that is enough")

    with pytest.raises(NoAnalysis, match="that is enough"):
        analyse_here(GAME, refusing(), [AnswersBy()])
