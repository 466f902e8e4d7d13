"""Values decisions and luck in gin rummy, and counts what a bot does (rulebook, section G).

Nothing is exact here. The value of an answer is the judgement of the house bot `master`: the mean
over many rounds that it plays to the end. The other seat's cards are drawn to fit all that the seat
has seen, and are the same for all answers. Values are in per cent of the game.

Three events are chance. In the deal, either seat might have got the other's ten cards, so the luck
is the value of its hand minus that of the other hand. Next, any card that neither seat holds may be
the upcard. Last, any card left in the stock may be drawn next, whatever both seats know and do. The
value of a card is estimated from a few terms (`TERMS`), each minus its mean over all cards that
might have come. So luck is 0 on average with any weights and any bots; good weights only make it
more precise. Luck is in games won, from the seat's view, and is scaled by how much a round can
change at this score.

`python -m tests.tools.luck_tables --fit` computed the weights by least squares, over 2,000 games of
each pair of `simple`, `patient` and `expert`. Those games must not be used for any measurement
(their seeds are in the tool).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from math import exp, sqrt
from operator import mul, or_
from typing import Any

from arena.games.analysis import Chart, ChartCell, drawn
from arena.games.evaluator import Answered, Cell, Evaluator, Tally, Worths
from arena.games.rules import AskSeat, TellSeat
from protocol.cards import PACK
from protocol.gin_melds import (
    CARD_BITS,
    arrange,
    card_mask,
    deadwood,
    deadwood_value,
    discard_deadwoods,
    is_meld,
    mask_deadwood,
    points,
)
from protocol.gin_rummy import (
    KNOCK_LIMIT,
    Dealt,
    Draw,
    GameOver,
    GinRummySettings,
    Melds,
    Offer,
    RoundOver,
    Turn,
)
from protocol.strategy import Appraiser, find, house_bots
from protocol.vocabulary import News, Question

__all__ = [
    "CHOOSE",
    "MEASURE",
    "TERMS",
    "GinRummyEvaluator",
    "deadwoods_with",
    "draw_terms",
    "win_chance",
]

CHOOSE, MEASURE = 60, 240
"""The number of samples to choose the best answer, and the number to measure its lead."""

_APPRAISER = "master"
_LEAST = 1.0  # per cent of the game; a smaller cost is level
_GRADES = (1.0, 3.0, 8.0)  # per cent above which a mistake is `?!`, `?`, `??`

_TARGET = 50  # the points of a game that `master` plays for
_ROUNDS = 10  # a game limited to fewer may end undecided
_TURNS = 31  # a round limited to fewer may leave cards in the stock

_DEADWOODS = {
    "0 (gin)": range(1),
    "1 to 3": range(1, 4),
    "4 to 6": range(4, 7),
    "7 to 10": range(7, 11),
}
_TURNS_TO_KNOCK = {
    "1 to 3": range(1, 4),
    "4 to 6": range(4, 7),
    "7 to 9": range(7, 10),
    "10 to 12": range(10, 13),
    "13 and later": range(13, 1000),
}
_GOOD = ("goes into a meld", "lowers the deadwood only", "does neither")
_MEAN, _KNOCKS = "on average", "it knocks at all"


TERMS = {
    # The deal: of one seat's hand minus the other's.
    "deadwood dealt": 0.0265,
    "mean deadwood with one card more": -0.0351,
    "pairs that are near": 0.0215,
    "their square": 0.0183,
    # The up-card.
    "deadwood with the up-card, for the starter": -0.0108,
    # A card from the stock.
    "deadwood": -0.0099,
    "deadwood up to 20": -0.0137,
    "knock": 0.234,
    "gin": 0.564,
    "left to the other seat, late": -0.0331,
    "points of the card": 0.0053,
    "near two cards": 0.0385,
}
"""The terms of luck, and the weight of each.

"Deadwood" is the deadwood after the best discard. Two cards are near if a third card can make a
meld of them. "Knock" and "gin" are how much a knock, or going gin, would change the chance to win
if it happened now.
"""

_DRAW = 5  # index of the first term for a card from the stock

_BONUS = 25  # G11
_TYPICAL = 25  # points for winning a round, used for `at_stake`
_LOW = 20  # deadwood below which a knock is near
_STOCK = 31  # cards in the stock after the deal

_PACK = (1 << 52) - 1
_BITS = tuple(sorted(CARD_BITS.values()))
_VALUES = {CARD_BITS[card]: deadwood_value(card) for card in PACK}
_DEAREST_FIRST = tuple(sorted(_BITS, key=lambda bit: -_VALUES[bit]))


def _pairs_by_card() -> dict[int, tuple[int, ...]]:
    """By card, the pairs of other cards that make a meld of three with it."""
    names = {bit: card for card, bit in CARD_BITS.items()}
    pairs: dict[int, tuple[int, ...]] = {}
    for place, bit in enumerate(_BITS):
        suit, rank = divmod(place, 13)
        near = [at for at in range(13) if 0 < abs(at - rank) <= 2]
        others = [1 << 13 * suit + at for at in near]
        others += [1 << 13 * other + rank for other in range(4) if other != suit]
        pairs[bit] = tuple(
            one | two
            for at, one in enumerate(others)
            for two in others[at + 1 :]
            if is_meld((names[bit], names[one], names[two]))
        )
    return pairs


_PAIRS = _pairs_by_card()
_NEAR = {bit: reduce(or_, pairs) for bit, pairs in _PAIRS.items()}


def win_chance(needs: int, other_needs: int) -> float:
    """The chance to win a game in which the seats still need these points.

    The curve is fitted to games of equal bots whose rounds score like those of the house bots.
    """
    if needs <= 0 or other_needs <= 0:
        return float(needs <= 0)
    return 1 / (1 + exp((needs - other_needs) / sqrt(554 + 8.65 * (needs + other_needs))))


def at_stake(needs: int, other_needs: int) -> float:
    """Half of the difference that winning instead of losing a round makes to the chance to win."""
    won = win_chance(needs - _TYPICAL, other_needs)
    return (won - win_chance(needs, other_needs - _TYPICAL)) / 2


def deadwoods_with(hand: int, cards: Sequence[int]) -> list[int]:
    """By card, the least deadwood of ten cards and this one after the best discard.

    `hand` is a mask of `card_mask`, and so is every card.
    """
    held = [bit for bit in _DEAREST_FIRST if hand & bit]
    now = mask_deadwood(hand)
    # A card in no meld is discarded, or is kept and the most costly card goes instead.
    least = _after_discard(hand, held, now)
    return [
        _after_discard(hand | card, held, now)
        if any(pair & hand == pair for pair in _PAIRS[card])
        else min(now, least + _VALUES[card])
        for card in cards
    ]


def _after_discard(mask: int, discards: Sequence[int], least: int) -> int:
    """The least deadwood after one of the discards, highest value first; at most `least`."""
    whole = mask_deadwood(mask)
    for bit in discards:
        if whole - _VALUES[bit] >= least:
            break  # a discard lowers the deadwood by at most its own points
        left = mask_deadwood(mask ^ bit)
        if left < least:
            least = left
    return least


def hand_terms(hand: int) -> list[float]:
    """The terms for comparing two dealt hands."""
    with_one = deadwoods_with(hand, _cards(_PACK ^ hand))
    near = sum([(hand & _NEAR[card]).bit_count() for card in _cards(hand)]) / 2
    return [mask_deadwood(hand), sum(with_one) / len(with_one), near, near * near / 10]


def draw_terms(
    hand: int, other: int, stock: Sequence[int], needs: tuple[int, int]
) -> list[tuple[float, ...]]:
    """By card of the stock, the terms for the seat that draws it.

    Args:
        hand: its ten cards.
        other: the other seat's cards.
        stock: the cards left, in any order.
        needs: the points that this seat, and that the other one, needs to win the game.
    """
    stake, level = at_stake(*needs), win_chance(*needs)
    late = (_STOCK - len(stock)) / _STOCK
    now, others = mask_deadwood(hand), mask_deadwood(other)
    gin = win_chance(needs[0] - _BONUS - others, needs[1]) - level
    knocks = [
        win_chance(*_needs_after(needs, others - own)) - level for own in range(KNOCK_LIMIT + 1)
    ]
    terms: list[tuple[float, ...]] = []
    lefts, other_lefts = deadwoods_with(hand, stock), deadwoods_with(other, stock)
    for card, left, other_left in zip(stock, lefts, other_lefts, strict=True):
        terms.append(
            (
                stake * left,
                stake * min(left, _LOW),
                knocks[left] if 0 < left <= KNOCK_LIMIT else 0.0,
                gin if left == 0 else 0.0,
                stake * late * (others - other_left) if left == now else 0.0,
                stake * _VALUES[card],
                stake * ((hand & _NEAR[card]).bit_count() >= 2),
            )
        )
    return terms


def _needs_after(needs: tuple[int, int], difference: int) -> tuple[int, int]:
    """What the seats need after a knock with so much less deadwood than the other seat (G11)."""
    if difference > 0:
        return needs[0] - difference, needs[1]
    if difference == 0:
        return needs
    return needs[0], needs[1] - _BONUS + difference


def _cards(mask: int) -> list[int]:
    return [bit for bit in _BITS if mask & bit]


class GinRummyEvaluator(Evaluator):
    """Evaluates a match of gin rummy; luck is counted per game."""

    def __init__(self, settings: GinRummySettings, seat: int | None = None) -> None:
        super().__init__(settings, seat)
        self._appraiser: Appraiser | None = None
        self._hands = [0, 0]
        self._stock = self._turns = 0
        self._needs = settings.target, settings.target

    @staticmethod
    def refuses(settings: GinRummySettings) -> str | None:
        """Why decisions are not judged with these settings; None if they are."""
        if _APPRAISER not in house_bots("gin_rummy", slow=True):
            return f"the house bot {_APPRAISER} is not installed, which judges"
        if settings.target != _TARGET:
            return (
                f"what a score is worth is known in games to {_TARGET} points, "
                f"not {settings.target}"
            )
        if settings.max_rounds < _ROUNDS or settings.max_turns < _TURNS:
            return (
                f"what a score is worth is known in games of {_ROUNDS} rounds and more, "
                f"of {_TURNS} turns and more"
            )
        return None

    def prepare(self) -> None:
        appraiser = find("gin_rummy", _APPRAISER)()
        appraiser.seed("judge")  # so that the same match is judged the same
        appraiser.reset()
        self._appraiser = appraiser

    def heard(self, event: TellSeat | AskSeat | Answered) -> None:
        if type(event) is TellSeat:
            self._told(event.seat, event.news)
            if self._appraiser is not None:
                self._appraiser.hear(event.news)
        elif type(event) is Answered:
            if type(event.question) is Turn:
                discarded = CARD_BITS[event.answer.discard]
                self._hands[event.seat] = card_mask(event.question.hand) ^ discarded
                self._turns += 1
            if self._appraiser is not None:
                self._appraiser.recall(event.question, event.answer)
        elif type(event) is AskSeat and type(event.question) is Turn:
            self._stock &= ~CARD_BITS[event.question.drawn]

    def _told(self, seat: int, news: News) -> None:
        match news:
            case Dealt():
                self._turns, self._hands[seat] = 0, card_mask(news.hand)
                self._stock = _PACK ^ self._hands[0] ^ self._hands[1] ^ CARD_BITS[news.upcard]
            case RoundOver(scores=(mine, theirs)):
                self._needs = self.settings.target - mine, self.settings.target - theirs
            case GameOver():
                self._needs = self.settings.target, self.settings.target

    # ---- What an answer is worth

    def worths(self, question: Question[Any], answer: Any) -> Worths | None:
        """The values of the answers; None for melds declared against a knock, when all is open."""
        if type(question) is Melds:
            return None
        appraiser = self._appraiser
        assert appraiser is not None, "it was made ready"

        def sampled(samples: int) -> Worths:
            found = appraiser.appraise(question, answer, samples=samples)
            return Worths(
                values={
                    each: [100 * worth for worth in worths]
                    for each, worths in zip(found.answers, found.worths, strict=True)
                },
                unit="% of the game",
                grades=_GRADES,
                least=_LEAST,
                again=lambda: sampled(MEASURE),
            )

        return sampled(CHOOSE)

    # ---- What chance is worth

    def luck(self, event: TellSeat | AskSeat) -> Sequence[float] | None:
        if (terms := self.terms(event)) is None:
            return None
        luck = sum(map(mul, TERMS.values(), terms))
        return luck, -luck

    def gains(self, news: News) -> Sequence[float] | None:
        if type(news) is not GameOver:
            return None
        return float(news.winner == 0), float(news.winner == 1)

    def terms(self, event: TellSeat | AskSeat) -> list[float] | None:
        """Each of `TERMS` for seat 0, minus its mean; None if the event is not chance."""
        if type(event) is TellSeat and event.seat == 1 and type(event.news) is Dealt:
            return self._deal_terms(event.news)
        if type(event) is AskSeat and type(event.question) is Turn:
            drawn, seat = CARD_BITS[event.question.drawn], event.seat
            if drawn & self._stock:
                stock = _cards(self._stock)
                needs = self._needs[seat], self._needs[1 - seat]
                terms = draw_terms(self._hands[seat], self._hands[1 - seat], stock, needs)
                beyond = _beyond_mean(terms, stock.index(drawn))
                return [*[0.0] * _DRAW, *_of_first(seat, beyond)]
        return None

    def _deal_terms(self, news: Dealt) -> list[float]:
        hands, stake = [self._hands[0], card_mask(news.hand)], at_stake(*self._needs)
        mine, theirs = map(hand_terms, hands)  # the mean over both assignments is 0
        deal = [stake * (one - other) for one, other in zip(mine, theirs, strict=True)]
        unseen = _cards(_PACK ^ hands[0] ^ hands[1])
        lefts = [(stake * left,) for left in deadwoods_with(hands[news.starter], unseen)]
        upcard = _beyond_mean(lefts, unseen.index(CARD_BITS[news.upcard]))
        return [*deal, *_of_first(news.starter, upcard), *[0.0] * (len(TERMS) - _DRAW)]

    # ---- Charts

    def cells(self, event: TellSeat | Answered) -> Iterator[tuple[Cell, float]]:
        if type(event) is TellSeat and type(news := event.news) is RoundOver:
            yield _KNOCKS, news.knocker == self.seat
            if (knocker := news.knocker) is not None and knocker == self.seat:
                in_melds = sum(points(meld) for meld in news.melds[knocker])
                yield from _binned(_DEADWOODS, points(news.hands[knocker]) - in_melds)
                yield from _binned(_TURNS_TO_KNOCK, self._turns)
        elif type(event) is Answered and type(offer := event.question) is Offer:
            yield (_good(offer.hand, offer.upcard), "up-card"), event.answer == "take"
        elif type(event) is Answered and type(draw := event.question) is Draw:
            yield (_good(draw.hand, draw.discard), "discard"), event.answer == "discard"

    @staticmethod
    def charts(tally: Tally) -> tuple[Chart, ...]:
        return (
            _knocks(tally, "Deadwood at the knock", "points", _DEADWOODS),
            drawn(
                "Up-cards and discards taken",
                "how often it takes the card that lies open",
                {good: good for good in _GOOD},
                {pile: pile for pile in ("up-card", "discard")},
                lambda good, pile: tally.cell((good, pile)),
            ),
            _knocks(tally, "Turns to the knock", "own turn", _TURNS_TO_KNOCK),
        )


def _of_first(seat: int, terms: Iterable[float]) -> list[float]:
    """Convert a seat's terms to seat 0's view."""
    return [-term if seat else term for term in terms]


def _beyond_mean(terms: Sequence[Sequence[float]], came: int) -> list[float]:
    """The terms of the card that came, minus their means over all possible cards."""
    return [column[came] - sum(column) / len(column) for column in zip(*terms, strict=True)]


def _good(hand: Sequence[str], card: str) -> str:
    """The row of the charts for an open card: how useful it is to the hand."""
    with_card = [*hand, card]
    if any(card in meld for meld in arrange(with_card)[0]):
        return _GOOD[0]
    return _GOOD[1 if min(discard_deadwoods(with_card)) < deadwood(hand) else 2]


def _binned(bins: Mapping[str, range], value: int) -> Iterator[tuple[Cell, float]]:
    """Yield each bin with whether the value of a knock is in it, then the value for the mean."""
    for label, values in bins.items():
        yield (*bins, label), value in values
    yield (*bins, _MEAN), value


def _knocks(tally: Tally, title: str, column: str, bins: Mapping[str, range]) -> Chart:
    """How knocks are distributed over the bins, with their mean, and how many rounds have one."""

    def cell(row: str, _: str) -> ChartCell:
        if row != _MEAN:
            return tally.cell(row if row == _KNOCKS else (*bins, row))
        total, count = tally.count((*bins, _MEAN))
        return ChartCell(of=count, text=f"{total / count:.1f}" if count else "")

    rows = {label: label for label in (*bins, _MEAN, _KNOCKS)}
    return drawn(title, "of its knocks", rows, {column: column}, cell, line=len(bins))
