"""Who may be told what: no false alarm for a game in which cards are played, and passed on.

The search for plain leaks has its tests in test_game_check.py. Here three seats pass a card to the
left and play four tricks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.game_packages import breaches, checked_game, install_game
from tests.support.in_process import CommandProcess

_RULES = (
    (
        """    for seat in range(SEATS):
        yield TellSeat(seat, Dealt(number, starter, cards[seat]))
""",
        """    hands = [list(deck[4 * seat : 4 * seat + 4]) for seat in range(SEATS)]
    for seat in range(SEATS):
        yield TellSeat(seat, Dealt(number, starter, tuple(hands[seat])))
    given = []
    for seat in range(SEATS):
        card = yield AskSeat(seat, Act(number, tuple(hands[seat]), (), tuple(hands[seat])))
        hands[seat].remove(card)
        given.append(card)
    for seat in range(SEATS):
        card = given[(seat + 1) % SEATS]
        hands[seat].append(card)
        yield TellSeat(seat, Passed(card))
    won = [0] * SEATS
    leader = starter
    for _ in range(4):
        trick = {}
        for turn in range(SEATS):
            seat = (leader + turn) % SEATS
            hand = hands[seat]
            led = trick[leader][1] if trick else ""
            legal = tuple(c for c in hand if c[1] == led) or tuple(hand)
            card = yield AskSeat(seat, Act(number, tuple(hand), tuple(trick.values()), legal))
            hand.remove(card)
            trick[seat] = card
            yield TellSeat(EVERYONE, Acted(seat, card))
        led = trick[leader][1]
        leader = max((s for s in trick if trick[s][1] == led), key=lambda s: CARDS.index(trick[s]))
        won[leader] += 1
    paid = tuple(3 * w - 4 for w in won)
    for seat in range(SEATS):
        board.scores[seat] += paid[seat]
    yield TellSeat(EVERYONE, RoundOver(number, paid, tuple(board.scores)))
    return
""",
    ),
    ("    Acted,\n", "    Acted,\n    Passed,\n"),
    ("deck[seat : seat + 1]", "deck[4 * seat : 4 * seat + 4]"),
    ("at_least=SEATS", "at_least=12"),
    ("2.8 * settings", "15 * settings"),
)

_VOCABULARY = (
    ("from protocol.cards import RANKS, Card", "from protocol.cards import PACK, Card"),
    ('CARDS: tuple[Card, ...] = tuple(f"{rank}s" for rank in RANKS)', "CARDS = PACK"),
    ("Question[Action]", "Question[Card]"),
    (
        "    card: Card\n    actions: tuple[Action | None, ...]\n    legal: tuple[Action, ...] = ACTIONS\n",
        "    hand: tuple[Card, ...]\n    trick: tuple[Card, ...]\n    legal: tuple[Card, ...]\n",
    ),
    ("    starter: int\n    card: Card\n", "    starter: int\n    hand: tuple[Card, ...]\n"),
    (
        "    action: Action\n",
        '    action: Card\n\n\nclass Passed(News, frozen=True, gc=False, tag="passed"):\n    card: Card\n',
    ),
    ("    cards: tuple[Card | None, ...]\n", ""),
    (
        '    shown = [f"{name} {card}" for name, card in zip(names, news.cards, strict=True) if card]\n    yield f"shown are {\', \'.join(shown)}"\n',
        "",
    ),
    ("private=(Dealt,)", "private=(Dealt, Passed)"),
    (
        'Act: Asked("{who} has {card}", "{answer}s")',
        'Act: Asked("{who} has {hand}", "plays {answer}")',
    ),
    ('Told("{who} is dealt {card}"', 'Told("{who} is dealt {hand}"'),
    (
        "        RoundOver: Told",
        '        Passed: Told("{who} gets {card}"),\n        RoundOver: Told',
    ),
)

_BOTS = (
    (
        "        stays = self.stay(question.card, question.actions)\n",
        "        return question.legal[0]\n",
    ),
)

_HIDDEN = "    hidden=HiddenCards(lambda deck, seat: deck[4 * seat : 4 * seat + 4]),\n"


def broken(folder: Path, *edits: tuple[str, str]) -> list[str]:
    """What `arena check-game` says of the game with these changes of its rules."""
    parts = {"rules.py": (*_RULES, *edits), "vocabulary.py": _VOCABULARY, "bots.py": _BOTS}
    install_game(folder, "tricks_of_three", 3, parts)
    with CommandProcess.beside(folder) as commands:
        return breaches(checked_game(commands, folder, "tricks_of_three"))


pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("edits", [(), ((_HIDDEN, ""),)], ids=["with hidden cards", "without"])
def test_cards_that_are_played_and_passed_are_no_leak(tmp_path: Path, edits: Any) -> None:
    assert broken(tmp_path, *edits) == []


@pytest.mark.parametrize("says", [True, False], ids=["with hidden cards", "without"])
def test_answers_that_depend_on_the_cards_of_others_are_one(tmp_path: Path, says: bool) -> None:
    honest = "legal = tuple(c for c in hand if c[1] == led) or tuple(hand)"
    leaking = (
        f"{honest}\n"
        "            if len(hands[(seat + 1) % SEATS]) > 3 and hands[(seat + 1) % SEATS][0][1] in 'hd':\n"
        "                legal = legal[::-1]"
    )
    more = () if says else ((_HIDDEN, ""),)
    [line] = broken(tmp_path, (honest, leaking), *more)

    assert line.startswith("secrecy: seat ")
    assert "is asked another `act` if seat " in line


def test_another_card_of_the_hand_than_the_one_that_was_played_is_not_shown_to_all(
    tmp_path: Path,
) -> None:
    told = (
        "TellSeat(EVERYONE, Acted(seat, card))",
        "TellSeat(EVERYONE, Acted(seat, [*hand, card][0]))",
    )

    assert any(
        "all seats are told `acted`" in line and "which has not played it" in line
        for line in broken(tmp_path, told)
    )


def test_a_question_may_list_cards_that_nobody_is_known_to_hold(tmp_path: Path) -> None:
    guess = (
        "    for _ in range(4):\n        trick = {}\n",
        "    yield AskSeat(starter, Act(number, tuple(hands[starter]), (), CARDS))\n"
        "    for _ in range(4):\n        trick = {}\n",
    )

    assert broken(tmp_path, guess) == []
