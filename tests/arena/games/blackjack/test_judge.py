"""What hitting and standing cost in blackjack: exactly, by what the seat was shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import arena
from arena.games.analysis import Judgement, SeatMatch
from arena.games.blackjack.rules import GAME
from arena.games.match import MatchState
from arena.records.seat_document import seat_match
from bots.blackjack import Simple
from protocol.blackjack import NEW_DECK, POINTS, Bet, BlackjackSettings, Draw, Exposed, Shuffled
from protocol.vocabulary import Range
from tests.arena.games.blackjack.test_values import stood, worths
from tests.support.not_none import not_none

JUDGING = not_none(GAME.judging)

UNIFORM = BlackjackSettings(bankroll=1000, hands=1, shuffle="uniform")


def judged(match: SeatMatch) -> list[tuple[Draw, str, Judgement]]:
    judge = JUDGING.judge(match.settings, match.seat)
    found = []
    for decision in match.decisions:
        for news in decision.news:
            judge.heard(news)
        judgement = judge.judged(decision.question, decision.answer)
        judge.decided(decision.question, decision.answer)
        if type(decision.question) is Draw:
            assert judgement is not None
            found.append((decision.question, decision.answer, judgement))
        else:
            assert judgement is None, "the size of a bet is not judged"
    return found


def played(cards: str, answers: Sequence[object], hands: int = 1) -> SeatMatch:
    """A match whose first deck begins with these cards, and goes on in the order of a new one."""
    first = cards.split()
    deck = [*first, *(card for card in NEW_DECK if card not in first)]
    settings = BlackjackSettings(bankroll=1000, hands=hands, shuffle="uniform")
    match = MatchState(GAME, settings, decks=[deck, deck])
    for answer in answers:
        match.answer(answer)
    assert match.pending is None
    return seat_match(match.result().record, 0)


def unseen(*cards: str) -> tuple[int, ...]:
    left = [POINTS[card] for card in NEW_DECK if card not in cards]
    return tuple(left.count(points) for points in range(1, 11))


def test_a_stand_costs_what_the_hit_would_have_brought_more_times_the_bet() -> None:
    [(_, _, judgement)] = judged(played("Ts Th 6s 2c", [40, "stand"]))
    deck = unseen("Ts", "Th", "6s")
    stands, hits, _ = worths(deck, 16, False, 10)

    assert judgement.cost == pytest.approx(40 * (hits - stands), abs=1e-10)
    assert judgement.cost > 0
    assert (judgement.best, judgement.unit, judgement.error) == ("hit", "chips", None)


def test_the_best_answer_costs_nothing() -> None:
    judgements = judged(played("Ts 6h 3s 2c 9s", [40, "stand"]))

    assert [(each.cost, each.best, each.grade) for *_, each in judgements] == [(0.0, "stand", 0)]


def test_the_cards_that_a_hit_brings_count_as_seen() -> None:
    first, second = judged(played("2s Th 4s 2c 5s 9s", [10, "hit", "stand"]))
    deck = unseen("2s", "Th", "4s", "5s")
    stands, hits, _ = worths(deck, 11, False, 10)

    assert first[2].cost == 0
    assert stood(deck, 11, 10) < hits
    assert second[2].cost == pytest.approx(10 * (hits - stood(deck, 11, 10)), abs=1e-10)
    assert (second[2].best, second[2].grade) == ("hit", 3)
    assert stands < hits


def test_earlier_cards_count_as_seen_and_a_hole_card_that_was_never_shown_does_not() -> None:
    # A natural at first, so the two of clubs stays face down; then sixteen against a ten.
    match = played("As Th Ks 2c Ts Jh 6s 3c", [10, 10, "stand"], hands=2)
    [(question, _, judgement)] = judged(match)
    stands, hits, _ = worths(unseen("As", "Th", "Ks", "Ts", "Jh", "6s"), 16, False, 10)

    assert question.hand == ("Ts", "6s")
    assert judgement.cost == pytest.approx(10 * max(0, hits - stands), abs=1e-10)


def test_no_judgement_tells_the_hole_card() -> None:
    answers = [25, "hit", "stand"]
    found = [judged(played(f"5s Th 7s {hole} 2s Qc", answers)) for hole in ("As", "6d", "Kh", "9c")]

    assert all(each == found[0] for each in found)


def test_a_shuffle_puts_all_cards_back() -> None:
    judge = JUDGING.judge(UNIFORM, 0)
    again = judged(played("Ts Th 6s 2c", [40, "stand"]))[0][2]
    match = played("Ts Th 6s 2c", [40, "stand"])
    for news in match.news:
        judge.heard(news)
    judge.heard(Shuffled())
    for news in match.decisions[1].news:
        judge.heard(news)
    judge.decided(Bet(1, 1000, Range(5, 1000)), 40)

    assert judge.judged(match.decisions[1].question, "stand") == again


def test_answers_of_the_same_worth_are_level() -> None:
    # With nothing but tens left, twenty-one of the dealer's cannot be, and twelve loses either way.
    judge = JUDGING.judge(UNIFORM, 0)
    deck = [card for card in NEW_DECK if POINTS[card] != 10]
    exposed = [*deck, "Th", "Ts"]
    judge.heard(Shuffled())
    for card in exposed:
        judge.heard(Exposed(card, "player"))
    judge.decided(Bet(1, 1000, Range(5, 1000)), 40)
    judgement = judge.judged(Draw("Ts", ("Th", "2h"), 12, False), "hit")

    assert judgement is not None
    assert (judgement.cost, judgement.is_level, judgement.grade) == (0.0, True, 0)


@pytest.mark.stats
def test_the_costs_of_a_match_are_those_of_the_hands_that_were_played_wrong() -> None:
    result = arena.play(
        "blackjack",
        [Simple()],
        settings={"hands": 60, "bankroll": 5000, "shuffle": "uniform"},
        seed=8,
    )
    found = judged(seat_match(result.record, 0))

    assert all((each.cost > 0) == (answer != each.best) for _, answer, each in found)
    assert any(each.grade for _, _, each in found)


@pytest.mark.parametrize("shuffle", ["riffle", "uniform"])
def test_B14_after_a_riffle_nothing_is_judged(shuffle: str) -> None:
    reason = JUDGING.refuses(BlackjackSettings(shuffle=shuffle))  # type: ignore[arg-type]

    assert (reason is None) == (shuffle == "uniform")
    assert reason is None or "not every unseen card is equally likely" in reason
