"""Games that are made at run time: packages of their own, for any number of seats.

A toy is played in rounds. Every seat is dealt a card and bids 0 to 3; among those with the highest
bid the best card wins what all have bid. Against the dealer, which bids nothing, the player wins
its bid with a red card and loses it with a black one. A process finds the packages of a folder that
is in its `PYTHONPATH`.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from arena.games.catalogue import GAMES
from protocol import games as vocabularies
from protocol.games import VOCABULARIES

if TYPE_CHECKING:
    import pytest

    from arena.games.rules import Game

__all__ = ["install_toy", "toy_game", "toy_name", "write_toy"]

_WORDS = {1: "one", 2: "two", 3: "three", 6: "six", 10: "ten"}

_VOCABULARY = '''
"""What {name} says on the wire."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from protocol.cards import Card
from protocol.vocabulary import News, Question, Range, Settings, Vocabulary
from protocol.words import Asked, Told


class ToySettings(Settings, frozen=True):
    """The settings of a toy.

    Attributes:
        rounds: how many rounds a match has.
    """

    rounds: Annotated[int, Meta(ge=0, le=1_000_000)] = 10


class Bid(Question[int], frozen=True, gc=False, tag="bid"):
    """What to bid on your card.

    Attributes:
        round: which round of the match it is, from 1.
        card: your card.
        legal: 0 to 3.
    """

    round: int
    card: Card
    legal: Range


class Dealt(News, frozen=True, gc=False, tag="dealt"):
    """The card of a seat, told to it alone.

    Attributes:
        round: which round of the match it is, from 1.
        card: the card.
    """

    round: int
    card: Card


class Shown(News, frozen=True, gc=False, tag="shown"):
    """How a round ended, told to all.

    Attributes:
        round: which round of the match it was, from 1.
        cards: the cards, by seat.
        bids: the bids, by seat.
        gains: what the round brought, by seat.
    """

    round: int
    cards: tuple[Card, ...]
    bids: tuple[int, ...]
    gains: tuple[int, ...]


VOCABULARY = Vocabulary(
    name="{name}",
    title="Toy for {word}",
    alias="{name}",
    seats={seats},
    settings=ToySettings,
    opens=(Dealt,),
    closes=Shown,
    private=(Dealt,),
    payoffs=lambda news: news.gains,
    words={{
        Bid: Asked("{{who}} has {{card}}", "bids {{answer}}"),
        Dealt: Told(lambda news, names, who: [f"{{who}} is dealt {{news.card}}"]),
        Shown: Told("shown are {{cards}}: {{gains}}"),
    }},
)
'''

_RULES = '''
"""The rules of {name}."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from arena.games.rules import EVERYONE, AskSeat, Game, Rules, Scoreboard, TellSeat
from arena.games.shuffle import Stream
from protocol.cards import PACK, Card, check_cards
from protocol.vocabulary import Range
from {name}.vocabulary import VOCABULARY, Bid, Dealt, Shown, ToySettings

SEATS = VOCABULARY.seats
BIDS = Range(0, 3)


def match(settings: ToySettings, decks: Iterator[Sequence[Card]], board: Scoreboard) -> Rules:
    for number in range(1, settings.rounds + 1):
        deck = next(decks)
        for seat in range(SEATS):
            yield TellSeat(seat, Dealt(number, deck[seat]))
        bids: list[int] = []
        for seat in range(SEATS):
            bid: int = yield AskSeat(seat, Bid(number, deck[seat], BIDS))
            bids.append(bid)
        gains = payoffs(deck[:SEATS], bids)
        for seat, gain in enumerate(gains):
            board.scores[seat] += gain
        yield TellSeat(EVERYONE, Shown(number, tuple(deck[:SEATS]), tuple(bids), gains))


def payoffs(cards: Sequence[Card], bids: Sequence[int]) -> tuple[int, ...]:
    if SEATS == 1:
        return (bids[0] if cards[0][1] in "hd" else -bids[0],)
    best = max(range(SEATS), key=lambda seat: (bids[seat], PACK.index(cards[seat])))
    return tuple(sum(bids) - bids[best] if seat == best else -bids[seat] for seat in range(SEATS))


def deals(settings: ToySettings, stream: Stream) -> Iterator[Sequence[Card]]:
    while True:
        yield stream.dealt(PACK, SEATS)


def stacked(
    settings: ToySettings, decks: Iterable[Sequence[str]]
) -> Iterator[Sequence[Card]]:
    for deck in decks:
        check_cards(deck, at_least=SEATS)
        yield tuple(deck)


GAME = Game(
    vocabulary=VOCABULARY,
    about="The highest bid wins.",
    summary="Everybody has a card and bids 0 to 3; the highest bid wins all bids.",
    rules=match,
    deals=deals,
    stacked=stacked,
    decisions=lambda settings: float(SEATS * settings.rounds + 1),
    rounds=lambda most: {{"rounds": most}},
    for_people={{"rounds": 3}},
)
'''

_BOTS = '''
"""House bots of {name}."""

from __future__ import annotations

from bots.strategy import BaseStrategy, RandomMixin

__all__ = ["Bold", "PlayerStrategy", "Random", "Timid"]


class PlayerStrategy(BaseStrategy):
    """One seat; override `bid`, and `shown` to learn."""

    game = "{name}"

    def bid(self, card: str) -> int:
        """What to bid with this card, 0 to 3."""
        return 1

    def shown(self, cards: tuple[str, ...], bids: tuple[int, ...]) -> None:
        """A round is over."""

    def decide(self, question: object) -> object:
        return self.bid(question.card)

    def hear(self, news: object) -> None:
        if news.kind == "shown":
            self.shown(news.cards, news.bids)


class Random(RandomMixin, PlayerStrategy):
    """Bids 0 to 3 at random."""


class Bold(PlayerStrategy):
    """Bids 3."""

    def bid(self, card: str) -> int:
        return 3


class Timid(PlayerStrategy):
    """Bids 0, and 1 with a face card."""

    def bid(self, card: str) -> int:
        return int(card[0] in "AKQJ")
'''


def toy_name(seats: int) -> str:
    return f"toy_{_WORDS[seats]}"


def write_toy(folder: Path, seats: int, version: str = "1.0") -> str:
    """Write the package of a toy and what an installer would write; returns the game's name."""
    name = toy_name(seats)
    package = folder / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    parts = {"vocabulary": _VOCABULARY, "rules": _RULES, "bots": _BOTS}
    for part, text in parts.items():
        source = text.format(name=name, seats=seats, word=_WORDS[seats])
        (package / f"{part}.py").write_text(source.lstrip())
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = {"protocol.games": "vocabulary", "arena.games": "rules", "arena.bots": "bots"}
    (info / "entry_points.txt").write_text(
        "".join(f"[{group}]\n{name} = {name}.{part}\n" for group, part in groups.items())
    )
    return name


@cache
def toy_game(seats: int) -> Game:
    """The rules of a toy, in this process; it is in no table of games."""
    with TemporaryDirectory() as folder:
        name = write_toy(Path(folder), seats)
        sys.path.insert(0, folder)
        try:
            game: Game = importlib.import_module(f"{name}.rules").GAME
        finally:
            sys.path.remove(folder)
    return game


def install_toy(seats: int, monkeypatch: pytest.MonkeyPatch) -> Game:
    """Put a toy into the tables of this process, until the test is over."""
    game = toy_game(seats)
    monkeypatch.setitem(GAMES, game.name, game)
    monkeypatch.setitem(VOCABULARIES, game.name, game.vocabulary)
    monkeypatch.setitem(vocabularies._NAMES, game.name, game.vocabulary)
    return game
