"""What another answer would have brought: said only where nobody could have done anything more."""

from __future__ import annotations

import arena
from arena.games.match import Record
from arena.games.replay import CardsDealt, SeatAnswered, events_of
from arena.lab.replay_to_bot import brought
from bots.ace_king_queen import Bluffer, Honest
from protocol.ace_king_queen import Open, Respond

RANKS = "AKQ"


def record() -> Record:
    bots = [Bluffer(), Honest()]
    return arena.play("ace_king_queen", bots, settings={"hands": 60}, seed=2).record


def test_an_answer_that_ends_the_hand_is_weighed_by_the_cards_alone() -> None:
    played = record()
    deck: tuple[str, ...] = ()
    seen = set()
    for event in events_of(played):
        if isinstance(event, CardsDealt):
            deck = event.deal
        if not isinstance(event, SeatAnswered):
            continue
        index, seat, question = event.index, event.seat, event.question
        sign = 1 if RANKS.index(deck[seat]) < RANKS.index(deck[1 - seat]) else -1
        outcomes = {"check": sign, "call": 2 * sign, "fold": -1}
        others = {"bet": "check", "check": "bet", "call": "fold", "fold": "call"}
        answer = played.answers[index]
        other = others[answer]
        found = brought(played, seat, index, other)
        if isinstance(question, Open) and other == "bet":
            assert found is None  # the other seat would have been asked
        elif isinstance(question, Respond):
            assert found == (outcomes[answer], outcomes[other])
            seen.add(other)
        else:
            assert found is not None
            assert found[1] == outcomes[other]
            seen.add(other)

    assert seen >= {"check", "fold"}
