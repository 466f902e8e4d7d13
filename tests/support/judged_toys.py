"""A toy for two whose decisions are judged and counted: 3 is the best bid with a red card, else 0.

What a bid is away from that it costs, in chips, and every second bid is an estimate with an error
of 0.25. A bid that is 1 away is level, a card of rank 2 is not judged.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import arena
from arena.games.analysis import Chart, ChartCell, Judgement, Judging
from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, Record
from arena.games.rules import EVERYONE, Game, Rules, TellSeat, Unit
from protocol.vocabulary import News, Question
from tests.support.toy_games import install_toy, toy_game

__all__ = ["ToyBids", "install_judged_toy", "play_in_pairs", "toy_match", "toy_record"]


class ToyBids:
    """Bids what it is given, in turn."""

    def __init__(self, *bids: int) -> None:
        self._bids = bids

    def decide(self, question: Any) -> object:
        if question.round > len(self._bids):
            raise RuntimeError("no more bids")
        return self._bids[question.round - 1]

    def hear(self, news: Any) -> None:
        return

    def reset(self) -> None:
        return


def toy_match(
    game: str, bids: tuple[int, ...], cards: str, rounds: int | None = None
) -> MatchResult:
    """Seat 2 has these cards and bids this; seat 1 bids 0 with the king of clubs."""
    decks = [["Kc", card] for card in [*cards.split(), "2s"]]
    bots = [ToyBids(*(0,) * 99), ToyBids(*bids)]
    return arena.play(game, bots, settings={"rounds": rounds or len(bids)}, decks=decks)


def toy_record(game: str, bids: tuple[int, ...], cards: str, rounds: int | None = None) -> Record:
    return toy_match(game, bids, cards, rounds).record


class _ToyJudge:
    def __init__(self) -> None:
        self._judged = 0

    def heard(self, news: News) -> None:
        return

    def decided(self, question: Question[Any], answer: Any) -> None:
        return

    def judged(self, question: Question[Any], answer: Any) -> Judgement | None:
        card = question.card  # type: ignore[attr-defined]
        if card[0] == "2":
            return None
        self._judged += 1
        best = 3 if card[1] in "hd" else 0
        away = abs(answer - best)
        return Judgement(
            cost=float(away),
            best=best,
            unit="chips",
            error=0.25 if self._judged % 2 == 0 and away else None,
            is_level=away == 1,
            grade=0 if away <= 1 else away,
        )


class _BidMeter:
    def __init__(self) -> None:
        self._bids = [0, 0, 0, 0]
        self.heard_kinds: list[str] = []

    def begin(self, settings: Any, seat: int) -> None:
        return

    def heard(self, news: News) -> None:
        self.heard_kinds.append(news.kind)

    def decided(self, question: Question[Any], answer: Any) -> None:
        self._bids[answer] += 1

    def charts(self) -> tuple[Chart, ...]:
        of = sum(self._bids)
        cells = tuple(
            (ChartCell(share=count / of if of else None, count=count, of=of),)
            for count in self._bids
        )
        rows = ("0", "1", "2", "3")
        return (Chart(title="Bids", what="how often", rows=rows, columns=("bid",), cells=cells),)


def _refuses(settings: Any) -> str | None:
    return "more than 90 rounds are too many" if settings.rounds > 90 else None


def install_judged_toy(monkeypatch: pytest.MonkeyPatch, most: int | None = None) -> Game:
    """Put the toy into the tables of this process; returns the game."""
    judging = Judging(version=7, judge=lambda *_: _ToyJudge(), most=most, refuses=_refuses)
    plain = install_toy(2, monkeypatch)
    game = msgspec.structs.replace(plain, judging=judging, habits=_BidMeter)
    monkeypatch.setitem(GAMES, game.name, game)
    return game


class _ClosesPair(News, frozen=True, gc=False, tag="closes_pair"):
    """Two rounds are over, the pair of this number."""

    number: int


def _in_pairs(settings: Any, deals: Any, board: Any) -> Rules:
    """The toy's rules, which also say when two rounds are over."""
    rules = toy_game(2).rules(settings, deals, board)
    closed, step = 0, next(rules)
    while True:
        answer = yield step
        if isinstance(step, TellSeat) and step.news.kind == "shown":
            closed += 1
            if closed % 2 == 0:
                yield TellSeat(EVERYONE, _ClosesPair(closed // 2))
        try:
            step = rules.send(answer)
        except StopIteration:
            return


def _payoffs(news: _ClosesPair) -> tuple[float, float]:
    """Seat 2 wins the first pair, loses the second, and draws the third."""
    return {1: (-1.0, 1.0), 2: (1.0, -1.0)}.get(news.number, (0.0, 0.0))


def play_in_pairs(monkeypatch: pytest.MonkeyPatch, game: Game) -> None:
    """Let the toy be a game of pairs of rounds, whose decisions take long to judge."""
    assert game.judging is not None
    judging = msgspec.structs.replace(game.judging, is_slow=True)
    unit = Unit("pair", "rounds", _ClosesPair, _payoffs)
    in_pairs = msgspec.structs.replace(game, unit=unit, rules=_in_pairs, judging=judging)
    monkeypatch.setitem(GAMES, game.name, in_pairs)
