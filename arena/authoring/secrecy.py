"""Finds leaks in played-out matches: seats that learn of cards which they must not know.

Only the rules know who may see which card, so that not every leak can be found. These are found,
without false alarms:

- A card that a seat holds, by `Game.hidden`, is shown to another seat during the round.
- If `Game.hidden` has no `cards`: two seats are shown the same card, each in private and in
  different fields, which does not happen to a card on the table.
- A card that one seat was shown is told to all, although that seat has not played since, and there
  is still something to decide in the round. If a seat plays cards by naming them, a card that it
  holds, by `Game.hidden`, and has not named counts as not played.
- A card that one seat was shown is exchanged for a card that nobody has seen. If another seat is
  then told or asked something else after the same answers, it has learnt something of the card.

A card is free once its holder has named it in an answer, once all were told of it, once a news or
question type in `Game.hidden.until` has handed it on or turned it up, and at the end of the round.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from arena.authoring.playout import Playout, strings_in
from arena.games.replay import CardsDealt, Event, SeatAnswered
from arena.games.rules import EVERYONE, AskSeat, Game, TellSeat

__all__ = ["SecretCard", "exchanges", "first_difference", "leaks", "secret_cards"]


class SecretCard(msgspec.Struct, frozen=True):
    """A card that only its holder was shown in a round, and how to exchange it for another.

    Attributes:
        card: the card.
        holder: the seat; the number of seats for the dealer.
        deal: the number of its deal in the match, from 0.
        start: the number of the event after which the round began.
        unseen: the cards of that deal that nobody was shown up to the end of the round.
    """

    card: str
    holder: int
    deal: int
    start: int
    unseen: tuple[str, ...]


def leaks(game: Game, played: Playout) -> Iterator[str]:
    """Yield the leaks of a match that are visible without an exchange, in words."""
    watch = _RoundWatch(game)
    for event in played.events:
        yield from watch.note(event)


def secret_cards(game: Game, played: Playout) -> Iterator[SecretCard]:
    """Yield, for each round, one card of every seat and of the dealer that only its holder saw.

    The card is secret at a moment when something is asked; its holder may play it later.
    """
    watch = _RoundWatch(game)
    secrets: dict[int, str] = {}
    deal, start = -1, 0
    for number, event in enumerate(played.events):
        if _is_end(game, event):
            unseen = tuple(sorted(watch.deck - watch.seen - watch.holder.keys()))
            for holder, card in sorted((watch.secrets() | secrets).items()):
                yield SecretCard(card, holder, deal, start, unseen)
            start = number
            secrets.clear()
        if type(event) is CardsDealt:
            deal, start = deal + 1, number
        for _ in watch.note(event):
            pass
        if isinstance(event, AskSeat):
            secrets = watch.secrets() | secrets


def exchanges(deals: Iterator[Any], secret: SecretCard, other: str) -> Iterator[Any]:
    """Yield the same deals, with the secret card exchanged for another."""
    for number, deal in enumerate(deals):
        yield _swapped(deal, secret.card, other) if number == secret.deal else deal


def _swapped(deal: Any, one: str, other: str) -> Any:
    """Return a deal with two cards exchanged; one of them may not be in it yet."""
    if isinstance(deal, str):
        return {one: other, other: one}.get(deal, deal)
    if isinstance(deal, list):
        return [_swapped(item, one, other) for item in deal]
    if type(deal) is tuple:
        return tuple(_swapped(item, one, other) for item in deal)
    if isinstance(deal, msgspec.Struct):
        fields = {
            field: _swapped(getattr(deal, field), one, other) for field in deal.__struct_fields__
        }
        return msgspec.structs.replace(deal, **fields)
    return deal


def first_difference(
    game: Game, secret: SecretCard, before: Sequence[Event], after: Sequence[Event]
) -> str | None:
    """Return what another seat learns of an exchanged secret card; None if it learns nothing."""
    pairs = zip(before[secret.start + 1 :], after[secret.start + 1 :], strict=False)
    for old, new in pairs:
        if type(old) is not type(new) or _is_end(game, old):
            return None
        if not isinstance(old, AskSeat | TellSeat):
            continue
        assert isinstance(new, AskSeat | TellSeat), "it is of the same type"
        said, again = _message(old), _message(new)
        if old.seat != new.seat or type(said) is not type(again):
            return None
        if old.seat == secret.holder or said == again:
            continue
        if old.seat == EVERYONE and game.seats > 1:
            return None  # everybody may learn what the holder did, or what the rules reveal
        does = "asked" if isinstance(old, AskSeat) else "told"
        seat = 0 if old.seat == EVERYONE else old.seat
        return (
            f"seat {seat + 1} is {does} another `{said.kind}` if {_name(game, secret.holder)} has "
            f"another card, which only {_name(game, secret.holder)} may know"
        )
    return None


class _RoundWatch:
    """Keeps track of who was shown which card in the current round."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self.deck: set[str] = set()
        self.holder: dict[str, int] = {}  # the seat of each card, by `Game.hidden`
        self.seen: set[str] = set()  # the cards shown to any seat since the deal
        self._free: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        """Begin a round; its cards may come from the same deal as the previous round's."""
        # By card and by the field that showed it: the seats to which it was shown in private.
        self._shown: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._since: dict[str, int] = {}  # when a card was first shown
        self._played: dict[int, int] = {}  # when a seat last answered
        self._naming: set[int] = set()  # the seats that have answered with a card
        self._suspects: list[str] = []  # leaks if there is still something to decide
        self._time = 0

    def note(self, event: Event) -> Iterator[str]:
        self._time += 1
        if _is_end(self._game, event):
            for card in [*self._shown]:
                yield from self._seen_by_some(card)
            self._free |= self.holder.keys() | self.seen
            self._begin()
        elif isinstance(event, SeatAnswered):
            self._played[event.seat] = self._time
            if named := self.deck.intersection(strings_in(event.value)):
                self._naming.add(event.seat)
                self._free |= named
        elif isinstance(event, CardsDealt):
            self._take(event.deal)
        elif isinstance(event, AskSeat):
            yield from self._suspects
            self._suspects.clear()
            yield from self._show(event)
        elif isinstance(event, TellSeat):
            tell = self._tell_all if event.seat == EVERYONE and self._game.seats > 1 else self._show
            yield from tell(event)

    def secrets(self) -> dict[int, str]:
        """Return by holder a card that was shown to that holder only, if there is one."""
        found = {}
        for card, fields in self._shown.items():
            viewers = set().union(*fields.values())
            if len(viewers) == 1 and card not in self._free and card not in self.holder:
                found[min(viewers)] = card
        return found | {seat: card for card, seat in self.holder.items() if card not in self._free}

    def _take(self, deal: Any) -> None:
        counts = Counter(strings_in(deal))
        # A card that occurs twice in a deal cannot be tracked.
        self.deck = {card for card, count in counts.items() if count == 1}
        self.seen.clear()
        self._free.clear()
        self.holder = {}
        if (held := self._game.hidden.cards) is not None:
            for seat in range(self._game.seats + 1):
                for card in self.deck.intersection(strings_in(held(deal, seat))):
                    self.holder[card] = seat

    def _show(self, event: AskSeat | TellSeat) -> Iterator[str]:
        message, seat = _message(event), max(event.seat, 0)
        does = "asked" if isinstance(event, AskSeat) else "told"
        for field, card in self._cards(message):
            self.seen.add(card)
            if field == "legal":
                continue  # it may list cards that nobody holds; exchanges check it
            if type(message) in self._game.hidden.until:
                self._free.add(card)
            if card in self._free:
                continue
            holder = self.holder.get(card, seat)
            if holder != seat:
                yield (
                    f"seat {seat + 1} is {does} `{message.kind}`, whose `{field}` shows a card of "
                    f"{_name(self._game, holder)}: {card}"
                )
                self._free.add(card)
            else:
                self._shown[card][field].add(seat)
                self._since.setdefault(card, self._time)

    def _tell_all(self, event: TellSeat) -> Iterator[str]:
        message = event.news
        passes = type(message) in self._game.hidden.until
        for field, card in self._cards(message):
            self.seen.add(card)
            if card not in self._free and not passes:
                self._suspect(card, field, message.kind)
                yield from self._seen_by_some(card)
            self._free.add(card)

    def _suspect(self, card: str, field: str, kind: str) -> None:
        viewers = set().union(*self._shown[card].values())
        holder = self.holder.get(card)
        if holder is None and len(viewers) == 1:
            holder = min(viewers)
        if holder is None:
            return
        keeps = card in self.holder and holder in self._naming
        if not keeps and self._played.get(holder, -1) >= self._since.get(card, 0):
            return
        self._suspects.append(
            f"all seats are told `{kind}`, whose `{field}` shows a card of "
            f"{_name(self._game, holder)}, which has not played it: {card}"
        )

    def _seen_by_some(self, card: str) -> Iterator[str]:
        fields = self._shown.pop(card, {})
        viewers = sorted(set().union(*fields.values()))
        if len(viewers) < 2 or any(len(seats) == len(viewers) for seats in fields.values()):
            return
        where = " and ".join(f"`{field}`" for field in fields)
        who = " and ".join(str(seat + 1) for seat in viewers)
        yield f"seats {who} are each shown {card}, in {where}, before it is told to all"

    def _cards(self, message: Any) -> Iterator[tuple[str, str]]:
        for field in message.__struct_fields__:
            for card in self.deck.intersection(strings_in(getattr(message, field))):
                yield field, card


def _message(event: AskSeat | TellSeat) -> Any:
    return event.question if isinstance(event, AskSeat) else event.news


def _is_end(game: Game, event: Event) -> bool:
    words = game.vocabulary
    return type(event) is TellSeat and type(event.news) in (words.closes, *words.follows)


def _name(game: Game, holder: int) -> str:
    return "the dealer or the stock" if holder == game.seats else f"seat {holder + 1}"
