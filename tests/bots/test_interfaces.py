"""Every question and all news of a game have a method of their own: which calls come, and with what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import pytest

from arena.lab.in_process import play
from protocol.blackjack import HandOver
from protocol.cards import PACK
from protocol.games import VOCABULARIES
from protocol.high_low import legal_bids
from protocol.messages import Ending

NOT_THEIRS = {"decide", "hear", "reset", "seed", "recall"}

MINE = "As 2s 3s 7h 7d 7c Jc Qc Kc 5h".split()  # lacks 4h for gin
OTHER = "9s 9h 4d 6d 8c Th Js 2h Kd Ks".split()
GIN = [[*MINE, *OTHER, "Qd", "Qh", "3c", "5d", "8s", "Tc", "4h"]]
MELDS = (("7h", "7d", "7c"), ("As", "2s", "3s"), ("Jc", "Qc", "Kc"))
FIVE = "As Kd 5h 9c 2s".split()
HIGH_LOW = [[*FIVE, *(card for card in PACK if card not in FIVE)]] * 11


def noting(game: str, answers: Mapping[str, object]) -> Any:
    """A strategy that notes its calls, and gives these answers or the base's."""
    base = import_module(f"bots.{game}").PlayerStrategy

    def method(name: str) -> Callable[..., object]:
        def noted(self: Any, *told: object) -> object:
            self.calls.append(" ".join((name, *map(repr, told))))
            return answers[name] if name in answers else getattr(base, name)(self, *told)

        return noted

    own = [name for name, value in vars(base).items() if callable(value) and name[0] != "_"]
    methods = {name: method(name) for name in own if name not in NOT_THEIRS}
    return type("Noting", (base,), {**methods, "calls": []})()


class CallsCase(NamedTuple):
    """A match, and the calls that one of its seats gets."""

    game: str
    seat: int
    decks: list[Any]
    settings: Any
    answers: list[Any]
    calls: str


BETS: list[dict[str, object]] = [{"bet": True, "call": True}, {"bet": True, "call": False}]
CHECKS: list[dict[str, object]] = [{"bet": False}, {"bet": False}]
KNOCKS: list[dict[str, object]] = [{"knock": True, "get_melds": None}] * 2
QUITS: dict[str, object] = {"swap": False, "bid": "quit"}
BIDS = [QUITS, {"swap": True, "bid": 4}, {"swap": False, "bid": 4}, QUITS]
THREE_HANDS = ["AK", "QA", "KQ"], {"hands": 3}, BETS
PUSH = HandOver(5, ("As", "3s", "4d"), ("9h", "9c"), "push", 0, 100)
CASES = [
    CallsCase(
        *("ace_king_queen", 0, *THREE_HANDS),
        """bet 'A'; feedback 'A' 'K' 'bet' 'fold' True; call 'Q'; feedback 'Q' 'A' 'bet' 'call' False;
        bet 'K'; feedback 'K' 'Q' 'bet' 'fold' True""",
    ),
    CallsCase(
        *("ace_king_queen", 1, *THREE_HANDS),
        """call 'K'; feedback 'K' 'A' 'bet' 'fold' False; bet 'A'; feedback 'A' 'Q' 'bet' 'call' True;
        call 'Q'; feedback 'Q' 'K' 'bet' 'fold' False""",
    ),
    CallsCase(  # the right side even if it was never asked
        *("ace_king_queen", 1, ["AK", "AQ"], {"hands": 2}, CHECKS),
        """feedback 'K' 'A' 'check' None False; bet 'Q'; feedback 'Q' 'A' 'check' None True""",
    ),
    CallsCase(
        *("blackjack", 0, ["As 9h 3s 9c 4d".split()], {"hands": 1, "shuffle": "uniform"}, [{}]),
        f"""shuffled; bet 100 5;
        exposed 'As' 'player'; exposed '9h' 'dealer'; exposed '3s' 'player';
        draw '9h' ('As', '3s') 14 True; exposed '4d' 'player';
        draw '9h' ('As', '3s', '4d') 18 True; exposed '9c' 'dealer'; hand_over {PUSH}""",
    ),
    CallsCase(  # both declined, so the starter draws from the stock (G5)
        *("gin_rummy", 0, GIN, {"max_rounds": 1}, KNOCKS),
        f"""receive_initial_hand {tuple(MINE)}; will_take_top_discard 'Qd'; offer_feedback 'Qd' False;
        take_turn 'Qh'; knock; get_melds; opponent_end_round_feedback {tuple(OTHER)} ();
        end_game_feedback True""",
    ),
    CallsCase(
        *("gin_rummy", 1, GIN, {"max_rounds": 1}, KNOCKS),
        f"""receive_initial_hand {tuple(OTHER)}; offer_feedback 'Qd' False;
        will_take_top_discard 'Qd'; opponent_end_turn_feedback False 'Qd' 'Qh'; get_melds;
        opponent_end_round_feedback {tuple(MINE)} {MELDS}; end_game_feedback False""",
    ),
    CallsCase(
        *("high_low", 1, HIGH_LOW, {"gap": 1, "max_shuffles": 1}, BIDS),
        f"""dealt 1 1 0 'Kd' '2s'; swapped 0 False '2s'; swap 'Kd' '2s'; swapped 1 True 'Kd';
        swapped 2 False 'Kd'; swapped 3 False 'Kd'; bid_made 0 'quit';
        bid '2s' 'Kd' ('quit', None, None, None) {legal_bids(None)}; bid_made 1 4; bid_made 2 4;
        bid_made 3 'quit'; round_over (None, '2s', '5h', None) 4 (-2, 2, 2, -2) (-2, 2, 2, -2)""",
    ),
    CallsCase(
        *("three_card_poker", 0, ["As Ah Kd 9s 9h 5d".split()], {"rounds": 1, "stake": 101}),
        *([{"ante": 7, "play": False}],),
        """ante 101 50; play ('As', 'Ah', 'Kd') 7 101;
        round_over ('As', 'Ah', 'Kd') ('9s', '9h', '5d') 7 -1 94""",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.game}-{case.seat}" for case in CASES])
def test_every_question_and_news_has_its_method(case: CallsCase) -> None:
    bots = [noting(case.game, own) for own in case.answers]
    result = play(case.game, bots, decks=case.decks, settings=case.settings)
    expected = " ".join(case.calls.split()).split("; ")

    assert result.termination.kind is Ending.COMPLETED
    assert bots[case.seat].calls[: len(expected)] == expected


@pytest.mark.parametrize("game", VOCABULARIES)
def test_a_question_names_the_method_that_answers_it(game: str) -> None:
    base = import_module(f"bots.{game}").PlayerStrategy
    questions = VOCABULARIES[game].questions.values()
    names = {question.answered_by or question.__struct_config__.tag for question in questions}

    assert names <= {*vars(base)}
