"""What the five games say on the wire, which answers their questions take, and their settings."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from protocol import ace_king_queen as akq
from protocol import blackjack as bj
from protocol import gin_rummy as gin
from protocol import high_low as hl
from protocol import three_card_poker as tcp
from protocol.errors import BadSettings, IllegalAnswer
from protocol.games import VOCABULARIES
from protocol.vocabulary import Question, Range

WIRES: list[tuple[Any, str]] = [
    (akq.Open(1, "A"), '{"kind":"open","round":1,"card":"A","legal":["bet","check"]}'),
    (akq.Respond(2, "Q"), '{"kind":"respond","round":2,"card":"Q","legal":["call","fold"]}'),
    (
        akq.HandOver(1, 0, ("A", "K"), "bet", "fold", (1, -1), (1, -1)),
        '{"kind":"hand_over","round":1,"bettor":0,"cards":["A","K"],"open":"bet",'
        '"response":"fold","payoffs":[1,-1],"scores":[1,-1]}',
    ),
    (
        akq.HandOver(1, 0, ("A", "K"), "check", None, (1, -1), (1, -1)),
        '{"kind":"hand_over","round":1,"bettor":0,"cards":["A","K"],"open":"check",'
        '"response":null,"payoffs":[1,-1],"scores":[1,-1]}',
    ),
    (
        bj.Bet(3, 42, Range(5, 42)),
        '{"kind":"bet","round":3,"bankroll":42,"legal":{"min":5,"max":42}}',
    ),
    (
        bj.Draw("9h", ("As", "7d"), 18, True),
        '{"kind":"draw","upcard":"9h","hand":["As","7d"],"total":18,"soft":true,'
        '"legal":["hit","stand"]}',
    ),
    (bj.Shuffled(), '{"kind":"shuffled"}'),
    (bj.Exposed("As", "dealer"), '{"kind":"exposed","card":"As","to":"dealer"}'),
    (
        bj.HandOver(5, ("As", "Kd"), ("9h",), "natural", 7, 107),
        '{"kind":"hand_over","bet":5,"player":["As","Kd"],"dealer":["9h"],'
        '"outcome":"natural","payoff":7,"bankroll":107}',
    ),
    (
        gin.Turn("Kd", ("As", "Kd"), (gin.TurnAnswer("As"), gin.TurnAnswer("Kd", True))),
        '{"kind":"turn","drawn":"Kd","hand":["As","Kd"],"legal":['
        '{"discard":"As","knock":false,"melds":null},'
        '{"discard":"Kd","knock":true,"melds":null}]}',
    ),
    (gin.Melds(("As", "2s")), '{"kind":"melds","hand":["As","2s"],"legal":[null]}'),
    (hl.Swap("As", "7d"), '{"kind":"swap","card":"As","dealer_card":"7d","legal":["swap","keep"]}'),
    (
        hl.Bid("As", "7d", (None, "quit", 4, None), hl.legal_bids(4)),
        '{"kind":"bid","card":"As","dealer_card":"7d","bids":[null,"quit",4,null],'
        '"legal":["quit",4,6,8,10]}',
    ),
    (
        hl.Dealt(2, 11, 2, "As", "7d"),
        '{"kind":"dealt","shuffle":2,"round":11,"starter":2,"card":"As","dealer_card":"7d"}',
    ),
    (hl.Swapped(3, True, "4h"), '{"kind":"swapped","seat":3,"swapped":true,"dealer_card":"4h"}'),
    (hl.BidMade(0, "quit"), '{"kind":"bid","seat":0,"bid":"quit"}'),
    (hl.BidMade(0, 10), '{"kind":"bid","seat":0,"bid":10}'),
    (
        hl.RoundOver(("As", None, "7d", None), 4, (2, -2, 2, -2), (12, -2, 2, -12)),
        '{"kind":"round_over","cards":["As",null,"7d",null],"last_bid":4,'
        '"payoffs":[2,-2,2,-2],"scores":[12,-2,2,-12]}',
    ),
    (
        tcp.Ante(3, 21, Range(1, 10)),
        '{"kind":"ante","round":3,"cash":21,"legal":{"min":1,"max":10}}',
    ),
    (
        tcp.Play(("As", "Kd", "2c"), 5, 21),
        '{"kind":"play","hand":["As","Kd","2c"],"ante":5,"cash":21,"legal":["play","fold"]}',
    ),
    (
        tcp.RoundOver(("As", "Kd", "2c"), ("9s", "9h", "5d"), 5, -2, 11),
        '{"kind":"round_over","hand":["As","Kd","2c"],"dealer":["9s","9h","5d"],"ante":5,'
        '"outcome":-2,"cash":11}',
    ),
]


@pytest.mark.parametrize(("message", "wire"), WIRES, ids=[one.kind for one, _ in WIRES])
def test_a_message_has_the_names_of_the_table(message: Any, wire: str) -> None:
    assert msgspec.json.encode(message).decode() == wire
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(message)) == json.loads(wire)
    for codec in (msgspec.json, msgspec.msgpack):
        assert codec.decode(codec.encode(message), type=type(message)) == message


FALSE_FRIENDS: list[object] = [True, False, 4.0, "4", None, "", 10**9, -4, [4], {"bid": 4}]


@pytest.mark.parametrize(
    ("question", "legal", "others", "text"),
    [
        (akq.Open(1, "A"), ("bet", "check"), ["call", "fold", "BET"], "open; legal: bet, check"),
        (akq.Respond(1, "A"), ("call", "fold"), ["bet", "check"], "respond; legal: call, fold"),
        (bj.Bet(1, 12, Range(5, 12)), (5, 9, 12), [4, 13, 5.0, "5"], "bet; legal: 5 to 12"),
        (
            bj.Draw("9h", ("Ts", "2d"), 12, False),
            ("hit", "stand"),
            [0, "HIT", "hits", ["hit"]],
            "draw; legal: hit, stand",
        ),
        (
            gin.Offer("9h", ()),
            ("take", "pass"),
            ["Take", ["take"], {"take": 1}, b"take"],
            "offer; legal: take, pass",
        ),
        (
            gin.Draw("9h", ()),
            ("stock", "discard"),
            ["Stock", ["stock"], b"stock"],
            "draw; legal: stock, discard",
        ),
        (hl.Swap("As", "7d"), ("swap", "keep"), ["quit", 2, "SWAP"], "swap; legal: swap, keep"),
        (
            hl.Bid("As", "7d", (None, "quit", 4, None), hl.legal_bids(4)),
            ("quit", 4, 6, 8, 10),
            [2, 5, 12, "2", "Quit"],
            "bid; legal: quit, 4, 6, 8, 10",
        ),
        (tcp.Ante(1, 21, Range(1, 10)), (1, 10), [0, 11], "ante; legal: 1 to 10"),
        (
            tcp.Play(("As", "Kd", "2c"), 5, 100),
            ("play", "fold"),
            ["Play", "call", 0],
            "play; legal: play, fold",
        ),
    ],
    ids=lambda one: one.kind if isinstance(one, Question) else None,
)
def test_J1_exactly_the_listed_answers_are_legal(
    question: Question[Any], legal: tuple[object, ...], others: list[object], text: str
) -> None:
    assert [question.check(value) for value in legal] == list(legal)
    for value in others + FALSE_FRIENDS:
        with pytest.raises(IllegalAnswer, match=f"to {text}$"):
            question.check(value)


DEFAULTS: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 1000},
    "blackjack": {"bankroll": 100, "hands": 1000, "shuffle": "riffle"},
    "gin_rummy": {"starter": None, "max_turns": 200, "target": 50, "max_rounds": 100, "games": 1},
    "high_low": {"gap": 100, "max_shuffles": 50},
    "three_card_poker": {"stake": 1000, "rounds": 1000, "goal": None, "pair_kicker": False},
}


@pytest.mark.parametrize("game", VOCABULARIES)
def test_settings_have_the_defaults_of_the_rulebook(game: str) -> None:
    read = VOCABULARIES[game].read_settings

    assert msgspec.to_builtins(read(None)) == DEFAULTS[game]
    assert read(DEFAULTS[game]) == read(None)


@pytest.mark.parametrize(
    ("game", "values"),
    [
        *[("ace_king_queen", {"hands": n}) for n in (-1, True, 2.0, "2", None, 10**9)],
        *[("blackjack", {"bankroll": n}) for n in (-1, 5.5)],
        *[("blackjack", {"hands": n}) for n in (-1, "10")],
        ("blackjack", {"shuffle": "none"}),
        ("blackjack", {"minimum": 5}),
        *[("gin_rummy", {"starter": n}) for n in (2, -1, True, "0", 0.0)],
        *[("gin_rummy", {name: 0}) for name in ("max_turns", "target", "max_rounds", "games")],
        *[("gin_rummy", {"games": n}) for n in (True, 1.0, "1")],
        ("gin_rummy", {"rounds": 1}),
        *[("high_low", {"gap": n}) for n in (0, -1, 100.5, True)],
        *[("high_low", {"max_shuffles": n}) for n in (0, 100_001, "50")],
        ("high_low", {"hands": 10}),
        *[("three_card_poker", {"stake": n}) for n in (-1, 100.0, True)],
        *[("three_card_poker", {"goal": n}) for n in (-1, "200")],
        ("three_card_poker", {"rounds": -1}),
        ("three_card_poker", {"pair_kicker": 1}),
        ("three_card_poker", {"ante": 5}),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(game: str, values: dict[str, object]) -> None:
    with pytest.raises(BadSettings, match=f"^settings of {game}: "):
        VOCABULARIES[game].read_settings(values)
