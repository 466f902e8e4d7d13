"""The luck of a match, from its record alone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import arena
from arena.games.catalogue import GAMES
from arena.games.match import MatchState, Record
from arena.games.rules import AskSeat, Luck, LuckMeter, LuckRound, TellSeat
from arena.games.shuffle import seed_from_int
from arena.records.luck import MatchLuck, luck_of
from bots.ace_king_queen import Bluffer, Nash
from bots.blackjack import Counting
from bots.three_card_poker import Doubler
from protocol.errors import IllegalAnswer, NoLuck
from protocol.messages import Ending
from protocol.vocabulary import Settings


class StopsInHand(Nash):
    """Crashes when it is asked in this hand."""

    def __init__(self, hand: int) -> None:
        self.hand = hand

    def decide(self, question: Any) -> object:
        if question.round == self.hand:
            raise RuntimeError("stops here")
        return super().decide(question)


class NotingMeter(LuckMeter):
    """Writes down what it hears, and measures nothing."""

    def __init__(self, settings: Settings) -> None:
        self.rounds: list[LuckRound] = []
        self.heard: list[Any] = []

    def dealt(self, deal: Any) -> None:
        self.heard.append(sorted(deal))

    def told(self, told: TellSeat) -> None:
        self.heard.append(told.news.kind)

    def asked(self, asked: AskSeat) -> None:
        self.heard.append(f"asked {asked.seat}")

    def answered(self, asked: AskSeat, answer: Any) -> None:
        self.heard.append(f"{asked.seat} {answer}")


def record_of_hands(hands: int, first: Nash | None = None) -> Record:
    players = [first or Nash(), Bluffer()]
    for seat, player in enumerate(players):
        player.seed(seat)
    return arena.play("ace_king_queen", players, settings={"hands": hands}, seed=5).record


def test_gains_are_the_score_and_luck_is_that_of_the_rounds() -> None:
    record = record_of_hands(120)
    match = luck_of(record)

    assert len(match.rounds) == 120
    assert match.gains == record.scores
    assert match.unit == "chip"
    for seat in (0, 1):
        assert match.luck[seat] == pytest.approx(sum(each.luck[seat] for each in match.rounds))
    assert match.luck[0] == pytest.approx(-match.luck[1])
    assert match.luck[0] != 0


def test_gains_without_luck_are_added_up_in_the_games_own_blocks() -> None:
    match = luck_of(record_of_hands(120))
    without = [each.gains[0] - each.luck[0] for each in match.rounds]
    blocks = [sum(without[:50]), sum(without[50:100])]  # the last 20 hands are no whole block

    assert match.units is not None
    assert match.units.count == 2
    assert match.units.sums == pytest.approx((sum(blocks), -sum(blocks)))
    squares = sum(block * block for block in blocks)
    assert match.units.squares == pytest.approx((squares, squares))


def test_without_a_unit_of_the_game_each_round_is_one() -> None:
    settings = {"rounds": 30}
    record = arena.play("three_card_poker", [Doubler()], settings=settings, seed=2).record
    match = luck_of(record)
    without = [each.gains[0] - each.luck[0] for each in match.rounds]

    assert match == luck_of(Record.from_json(record.to_json())), "as it is stored"
    assert match.unit == "ante"
    assert match.units is not None
    assert match.units.count == len(match.rounds) == 30
    assert match.units.sums == pytest.approx((sum(without),))


def test_J2_of_a_match_that_an_offence_ended_only_whole_rounds_count() -> None:
    record = record_of_hands(20, StopsInHand(8))
    match = luck_of(record)

    assert record.termination.kind is Ending.CRASH
    assert match.rounds == luck_of(record_of_hands(20)).rounds[:7]
    assert match.gains == record.scores


def test_J3_the_stake_that_an_offence_loses_is_no_gain() -> None:
    played = arena.play("blackjack", [Counting()], settings={"shuffle": "uniform"}, seed=1).record
    stopped = replace(played, answers=played.answers[:50], scores=(-100,))
    match = luck_of(stopped)

    assert 0 < len(match.rounds) < 50
    assert match.rounds == luck_of(played).rounds[: len(match.rounds)]
    assert match.gains == (sum(each.gains[0] for each in match.rounds),)


def test_a_match_in_which_nothing_was_dealt_has_no_luck() -> None:
    game = GAMES["ace_king_queen"]
    match = MatchState(game, game.vocabulary.settings(), seed=seed_from_int(1), start=False)
    match.end(Ending.ABSENT, 0, "seat 1 never came")

    nothing = MatchLuck("chip", (), (0.0, 0.0), (0.0, 0.0), None, 50)
    assert luck_of(match.result().record) == nothing


def test_a_meter_hears_all_that_happens_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[NotingMeter] = []

    def noting(settings: Settings) -> NotingMeter:
        made.append(NotingMeter(settings))
        return made[-1]

    luck = Luck("chip", noting)
    monkeypatch.setitem(GAMES, "ace_king_queen", replace(GAMES["ace_king_queen"], luck=luck))

    assert luck_of(record_of_hands(2)).rounds == ()

    assert made[0].heard == [
        *(["A", "K", "Q"], "asked 0", "0 check", "hand_over"),
        *(["A", "K", "Q"], "asked 1", "1 bet", "asked 0", "0 fold", "hand_over"),
    ]


# ---- Refusals


def test_luck_is_refused_of_chosen_cards_or_an_unknown_measure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {"hands": 1}
    players = [Nash(), Bluffer()]
    played = arena.play("ace_king_queen", players, settings=settings, decks=[["A", "Q"]])

    with pytest.raises(NoLuck, match="got decks or cuts that somebody gave"):
        luck_of(played.record)
    game = replace(GAMES["ace_king_queen"], luck=None)
    monkeypatch.setitem(GAMES, "ace_king_queen", game)
    with pytest.raises(NoLuck, match="ace_king_queen does not say how its luck is measured"):
        luck_of(record_of_hands(2))


def test_B14_luck_is_refused_where_the_shuffle_is_not_fair() -> None:
    played = arena.play("blackjack", [Counting()], settings={"hands": 5}, seed=1)

    with pytest.raises(NoLuck, match="a riffle of a known deck is not fair chance"):
        luck_of(played.record)


def test_answers_that_do_not_fit_are_not_measured() -> None:
    record = record_of_hands(4)
    wrong = replace(record, answers=("raise", *record.answers[1:]))

    with pytest.raises(IllegalAnswer):
        luck_of(wrong)
