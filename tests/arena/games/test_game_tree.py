"""All courses of a unit: what is drawn and answered, what seats see, and what cannot be listed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import msgspec
import pytest

from arena.games import game_tree
from arena.games.game_tree import (
    ChanceNode,
    DecisionNode,
    GameTree,
    Leaf,
    TreeNode,
    Views,
    number_of,
)
from arena.games.rules import AskSeat, Game, Rules, TellSeat
from arena.games.shuffle import Stream
from protocol.errors import BadDeck, NoAnalysis
from protocol.vocabulary import Range
from tests.support.small_games import LEDUC, Payoffs, UnitSettings, ask, tell, unit_game

Unit = Generator[AskSeat | TellSeat, Any, Payoffs | None]
Deal = Callable[[], Any]


def tree_of(game: Game, before: list[Leaf] | None = None) -> GameTree:
    return GameTree(game, UnitSettings(), before or [], Views())


def shares(node: TreeNode, share: float = 1.0) -> dict[tuple[float, ...], float]:
    """How probable each payoff is, where every answer is as probable as another."""
    if isinstance(node, Leaf):
        return {node.payoffs: share}
    found: dict[tuple[float, ...], float] = {}
    parts = node.shares if isinstance(node, ChanceNode) else [1 / node.size] * node.size
    for part, child in zip(parts, node.children, strict=True):
        for payoffs, each in shares(child, share * part).items():
            found[payoffs] = found.get(payoffs, 0) + each
    return found


def test_a_deck_is_drawn_as_it_is_read_and_equal_cards_are_one() -> None:
    def play(number: int, deal: Deal) -> Unit:
        deck = deal()
        last = deck.pop()
        assert len(deck) == 3
        yield tell(deck[0])
        assert deck[:1] == [deck[0]]
        return (deck[0] == "a") * 10 + (last == "a"), 0

    tree = tree_of(unit_game(play, "aaab"))

    assert isinstance(tree.root, ChanceNode)
    assert tree.root.shares == (0.75, 0.25)
    assert shares(tree.root) == pytest.approx({(11, 0): 1 / 2, (1, 0): 1 / 4, (10, 0): 1 / 4})


def test_answers_of_a_range_and_numbers_of_a_stream_branch() -> None:
    def play(number: int, deal: Deal) -> Unit:
        drawn = deal()
        amount = yield ask(0, str(drawn), Range(2, 4))
        yield ask(1, "no choice", "pass")
        return amount * 10 + drawn, 0

    def deals(settings: Any, stream: Stream) -> Iterator[int]:
        while True:
            yield stream.below(3)

    tree = tree_of(msgspec.structs.replace(unit_game(play), deals=deals))

    assert sorted(shares(tree.root)) == [
        (10 * amount + drawn, 0) for amount in (2, 3, 4) for drawn in (0, 1, 2)
    ]


def test_answers_have_numbers() -> None:
    def number(answer: object, legal: str | Range) -> int:
        return number_of(answer, ask(0, "", legal).question)

    assert [number("y", "x y"), number("z", "x y"), number(5, Range(2, 9))] == [1, -1, 3]


def test_a_seat_cannot_tell_apart_what_it_was_not_told() -> None:
    def play(number: int, deal: Deal) -> Unit:
        deck = deal()
        yield tell(deck[0], 0)
        secret = yield ask(0, deck[0], "x y", number)
        yield tell("done")
        guess = yield ask(1, "?", "x y", number)
        return (1, -1) if guess != secret else (-1, 1)

    nodes = list(asked(tree_of(unit_game(play)).root))

    assert len({node.view for node in nodes if node.seat == 0}) == 2
    assert len({node.view for node in nodes if node.seat == 1}) == 1


def asked(node: TreeNode) -> Generator[DecisionNode, None, None]:
    """All questions of a tree."""
    if isinstance(node, DecisionNode):
        yield node
    for child in () if isinstance(node, Leaf) else node.children:
        yield from asked(child)


def test_a_unit_in_which_nothing_happens_is_a_leaf() -> None:
    def play(number: int, deal: Deal) -> Unit:
        yield tell("nothing")
        return 0, 0

    tree = tree_of(unit_game(play))

    assert tree.root == tree.leaves[0]
    assert tree.leaves[0].choices == ()


def test_it_holds_where_the_unit_goes_the_same_way() -> None:
    def play(number: int, deal: Deal) -> Unit:
        answer = yield ask(0, deal()[0], "x y", number)
        stake = 2 if number == 4 else 1
        return (stake, -stake) if answer == "y" else (0, 0)

    tree = tree_of(unit_game(play))
    first = tree.leaves[0]

    assert tree.holds([first])
    assert tree.holds([first, tree.leaves[-1]])
    assert not tree.holds([first] * 3)


def test_a_draw_of_fewer_outcomes_is_another_unit() -> None:
    def play(number: int, deal: Deal) -> Unit:
        deal()
        yield tell("nothing")
        return 0, 0

    def deals(settings: Any, stream: Stream) -> Iterator[int]:
        yield stream.below(3)
        yield stream.below(2)

    tree = tree_of(msgspec.structs.replace(unit_game(play), deals=deals))

    assert tree.holds([])
    assert not tree.holds([tree.leaves[0]])


def test_a_unit_is_closed_once_though_each_seat_is_told() -> None:
    def play(number: int, deal: Deal) -> Unit:
        answer = yield ask(0, "", "x y", number)
        return (number, -number) if answer == "y" else (0, 0)

    game = unit_game(play)

    def rules(settings: Any, decks: Any, board: Any) -> Rules:
        steps, reply = game.rules(settings, decks, board), None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration:
                return
            if isinstance(step, TellSeat):
                reply = yield TellSeat(0, step.news)
                reply = yield TellSeat(1, step.news)
            else:
                reply = yield step

    told_each = msgspec.structs.replace(game, rules=rules)
    first = tree_of(told_each).leaves[0]

    assert [leaf.payoffs for leaf in tree_of(told_each, [first] * 2).leaves] == [(0, 0), (3, -3)]


def test_leduc_has_as_many_courses_as_it_is_known_for() -> None:
    # 9 deals of ranks; after 4 of 9 ways to bet somebody has folded, and each of the other 5 goes
    # on with a common card: 24 deals of three ranks, and 9 ways to bet.
    assert len(tree_of(LEDUC).leaves) == 9 * 4 + 24 * 5 * 9


def too_many(number: int, deal: Deal) -> Unit:
    for card in deal()[:]:
        yield ask(0, card, "x y", number)
    return 0, 0


def endless(number: int, deal: Deal) -> Unit:
    while True:
        yield ask(0, "", "x y", number)


def unclosed(number: int, deal: Deal) -> Unit:
    yield tell("the end")
    return None


def one_pack(number: int, deal: Deal, kept: list[Any]) -> Unit:
    if number == 1:
        kept[:] = [deal()]
    yield ask(0, kept[0][number], "x y", number)
    return 0, 0


def huge(number: int, deal: Deal) -> Unit:
    yield ask(0, "", Range(1, 10**6), number)
    return 0, 0


def wrong(number: int, deal: Deal) -> Unit:
    yield tell("" + deal())
    return 0, 0


def bad_deck(number: int, deal: Deal) -> Unit:
    raise BadDeck("no such card")
    yield


@pytest.mark.parametrize(
    ("play", "why"),
    [
        (too_many, "a round has about 645,120 histories, more than 1,000"),
        (endless, "it may take more than 200 draws and answers to its end"),
        (unclosed, "a match may end before a round is closed"),
        (huge, "choose may be answered by 1 to 1000000: too many to try"),
        (wrong, "its rules fail where all cards are tried: TypeError"),
        (bad_deck, "no such card"),
    ],
)
def test_what_cannot_be_listed_is_refused(
    play: Callable[[int, Deal], Unit], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(game_tree, "MOST_HISTORIES", 1000)

    with pytest.raises(Exception, match="^" + why) as raised:
        tree_of(unit_game(play, "abcdefg"))

    assert isinstance(raised.value, NoAnalysis | BadDeck)


def test_as_many_histories_as_may_be_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(number: int, deal: Deal) -> Unit:
        yield ask(0, "", "x y z")
        return 0, 0

    monkeypatch.setattr(game_tree, "MOST_HISTORIES", 3)
    assert len(tree_of(unit_game(play)).leaves) == 3

    monkeypatch.setattr(game_tree, "MOST_HISTORIES", 2)
    with pytest.raises(NoAnalysis, match="has about 3 histories, more than 2"):
        tree_of(unit_game(play))


def test_cards_must_be_dealt_anew() -> None:
    kept: list[Any] = []
    game = unit_game(lambda number, deal: one_pack(number, deal, kept), "abc")
    first = tree_of(game).leaves[0]

    with pytest.raises(NoAnalysis, match="its cards are not dealt anew for each unit"):
        tree_of(game, [first])
