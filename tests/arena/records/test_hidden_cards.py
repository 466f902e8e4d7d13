"""What a seat's decisions cost follows from what that seat was told, and from no other card (J8).

Matches are stopped at random, and their decks are changed wherever the seat cannot know it. Then
every judgement is the same, and so are the seat's charts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.games.analysis import SeatMatch
from arena.games.catalogue import GAMES
from arena.games.gin_rummy import evaluator as gin_rummy_evaluator
from arena.games.match import MatchState, Record
from arena.games.replay import Playback, reopened
from arena.games.rules import AskSeat, TellSeat
from arena.games.shuffle import Stream, match_key, seed_from_int
from arena.records.habits import habits_of
from arena.records.mistakes import judged
from arena.records.seat_document import seat_match
from bots.strategy import choose
from protocol.cards import PACK
from protocol.errors import ArenaError, OutOfDecks
from protocol.messages import Ending
from tests.support.fake_appraiser import FakeAppraiser
from tests.support.random_matches import SETTINGS

MORE: dict[str, dict[str, object]] = {
    "blackjack": {"shuffle": "uniform"},  # of cuts no two give the same cards
    "gin_rummy": {"games": 1},
}
DECKS = 40
SWAPS = 60
JUDGED = [name for name, game in GAMES.items() if game.judging is not None]
COUNTED = [name for name, game in GAMES.items() if game.habits is not None]


class ListeningAppraiser(FakeAppraiser):
    """Thinks what follows from everything that it was told, so that any other card shows."""

    def appraise(self, question: Any, answer: Any = None, /, *, samples: int) -> Any:
        heard = sha256(repr((self.calls, question)).encode()).hexdigest()
        self._rng = Random(heard)
        self.ahead = self._rng.random() / 5
        return super().appraise(question, answer, samples=samples)


@pytest.fixture(autouse=True, scope="module")
def _quick_judge() -> Iterator[None]:
    """The house bot that judges takes seconds, and hears what this one hears."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gin_rummy_evaluator, "find", lambda game, name: ListeningAppraiser)
        patch.setattr(
            gin_rummy_evaluator, "house_bots", lambda game, slow: {"master": ListeningAppraiser}
        )
        yield


def stopped(game: str, number: int, answers: int) -> Record:
    """A random match with given decks, that was stopped after so many answers."""
    rules, rng = GAMES[game], Random(f"{game} {number}")
    given = rules.vocabulary.read_settings({**SETTINGS[game], **MORE.get(game, {})})
    stream = Stream(match_key(seed_from_int(number), ()))
    decks = [whole(deal) for deal in islice(rules.deals(given, stream), DECKS)]
    match = MatchState(rules, given, decks=decks)
    while match.pending is not None and len(match.answers) < answers:
        match.answer(choose(match.pending.question.choices, rng))
    match.end(Ending.VOID, None, "stopped")
    return match.result().record


def whole(deal: Any) -> list[Any]:
    """A deck with all cards that were not dealt at its end."""
    deck = list(getattr(deal, "deck", deal))
    return [*deck, *(card for card in PACK if card not in deck)] if deck[0] in PACK else deck


def seen_by(record: Record, seat: int) -> SeatMatch | None:
    """What the seat saw; None if the record's answers do not fit its decks."""
    try:
        return seat_match(record, seat)
    except ArenaError:
        return None


def with_other_cards(record: Record, seat: int, rng: Random) -> Record:
    """The record with cards in other places, as far as the seat cannot know it."""
    assert record.decks is not None
    decks = [list(deck) for deck in record.decks]
    seen = seen_by(record, seat)
    for _ in range(SWAPS):
        deck = decks[-1] if rng.random() < 0.5 else rng.choice(decks)
        one, other = rng.sample(range(len(deck)), 2)
        deck[one], deck[other] = deck[other], deck[one]
        changed = replace(record, decks=tuple(map(tuple, decks)))
        if seen_by(changed, seat) == seen:
            record = changed
        else:
            deck[one], deck[other] = deck[other], deck[one]
    return record


@pytest.mark.parametrize("game", sorted({*JUDGED, *COUNTED}))
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(number=st.integers(0, 10**9), answers=st.integers(1, 40), where=st.integers(0, 9))
def test_cards_that_a_seat_does_not_know_change_no_judgement(
    game: str, number: int, answers: int, where: int
) -> None:
    seat = where % GAMES[game].seats
    record = stopped(game, number, answers)
    other = with_other_cards(record, seat, Random(number))

    if game in JUDGED:
        assert list(judged(record, seat)) == list(judged(other, seat))
    if game in COUNTED:
        one, another = ([seat_match(each, seat)] for each in (record, other))
        assert habits_of(GAMES[game], one) == habits_of(GAMES[game], another)


@pytest.mark.parametrize("game", JUDGED)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(number=st.integers(0, 10**9), answers=st.integers(2, 40), where=st.integers(0, 9))
def test_what_comes_later_changes_no_judgement(
    game: str, number: int, answers: int, where: int
) -> None:
    seat = where % GAMES[game].seats

    early = list(judged(stopped(game, number, answers // 2), seat))
    late = list(judged(stopped(game, number, answers), seat))

    assert late[: len(early)] == early


@pytest.mark.parametrize("game", sorted({*JUDGED, *COUNTED}))
def test_cards_are_changed_that_another_seat_or_the_dealer_has(game: str) -> None:
    """So that the tests above can fail: what all would know is another match then."""
    changed = 0
    for number in range(30):
        record = stopped(game, number, 8)
        seat = number % GAMES[game].seats
        other = with_other_cards(record, seat, Random(number))
        changed += played_on(record) != played_on(other)

    assert changed >= 3


def played_on(record: Record) -> list[Any]:
    """All that is told and asked in a match, and in the answers after it was stopped."""
    playback = Playback(reopened(record))
    events, match = playback.take_events(), playback.match
    for value in record.answers:
        events += playback.feed(value)
    with suppress(OutOfDecks):
        while match.pending is not None and len(match.answers) < len(record.answers) + 9:
            events += playback.feed(choose(match.pending.question.choices, Random(1)))
    return [event for event in events if isinstance(event, AskSeat | TellSeat)]


@pytest.mark.parametrize("game", JUDGED)
def test_other_cards_of_the_seat_itself_are_judged_in_another_way(game: str) -> None:
    seats = GAMES[game].seats
    found = [list(judged(stopped(game, number, 40), number % seats)) for number in range(20)]

    assert len({one.judgement.cost for decisions in found for one in decisions}) > 1
