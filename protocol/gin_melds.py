"""Melds, deadwood and layoffs: the arithmetic of gin rummy both ends must agree on.

No messages, no I/O, no turns: cards in, melds and points out (rulebook, section G). A card is its
rank and suit, "As" or "Td". Inside, a hand is a mask of 52 bits, thirteen to a suit in the order of
`_SUITS` with the ace lowest. That is also the deck order in which every result is given.

How the full search stays small: once it is settled which *sets* a hand takes, its runs
need no search, since every stretch of three or more neighbours in what is left melds
whole. So only sets are searched for, and only ranks held three or four times
matter: most hands have one or two ways of taking sets, no hand of eleven more than 72.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import chain

from protocol.cards import Card

__all__ = [
    "CARD_BITS",
    "Layoff",
    "Meld",
    "arrange",
    "best_defence",
    "card_mask",
    "deadwood",
    "deadwood_value",
    "discard_deadwoods",
    "is_meld",
    "lay_off",
    "mask_deadwood",
    "points",
]

Meld = tuple[Card, ...]
Layoff = tuple[Card, int]  # a card, and the index of the knocker's meld it went onto

_RANKS = "A23456789TJQK"
_SUITS = "shdc"
_DECK = tuple(rank + suit for suit in _SUITS for rank in _RANKS)
_PLACE = {card: place for place, card in enumerate(_DECK)}
CARD_BITS = {card: 1 << place for card, place in _PLACE.items()}
_VALUE = {card: min(place % 13 + 1, 10) for card, place in _PLACE.items()}  # G1

_SUIT = (1 << 13) - 1  # one suit's bits
_TWO_SUITS = (1 << 26) - 1
_ONE_RANK = 1 | 1 << 13 | 1 << 26 | 1 << 39  # the four aces; shifted, any rank
_RUN_STARTS = (_SUIT >> 2) * _ONE_RANK  # no run starts at a queen, as Q-K-A is not a run (G1)

# By rank bit, the sets of that rank in order of preference; 0 stands for no set.
_SETS = {
    1 << rank: (
        _ONE_RANK << rank,
        *(_ONE_RANK << rank & ~CARD_BITS[_RANKS[rank] + suit] for suit in reversed(_SUITS)),
        0,
    )
    for rank in range(13)
}
_RUNS = frozenset(
    (1 << length) - 1 << 13 * suit + lowest
    for suit in range(4)
    for length in range(3, 14)
    for lowest in range(14 - length)
)
_MELDS = _RUNS.union(*_SETS.values()) - {0}


def _run_cards(mask: int) -> int:
    """Return the cards in stretches of three or more neighbours; each stretch is one run."""
    lowest = mask & mask >> 1 & mask >> 2 & _RUN_STARTS
    return lowest | lowest << 1 | lowest << 2


def _values_by_suit() -> list[int]:
    """Return the points of the cards for each of a suit's 8,192 masks."""
    values = [0]
    for card in _DECK[:13]:
        values += [value + _VALUE[card] for value in values]
    return values


_VALUES = _values_by_suit()
# For each of a suit's masks, the cards that are in runs, and the points left by the runs (3 ms).
_RUN_CARDS = [_run_cards(suit) for suit in range(1 << 13)]
_DEADWOOD = [_VALUES[suit & ~runs] for suit, runs in enumerate(_RUN_CARDS)]


def deadwood_value(card: str) -> int:
    """What one unmelded card counts: ace 1, pips at face value, J Q K 10 (G1).

    Raises `ValueError` if there is no such card.
    """
    try:
        return _VALUE[card]
    except KeyError:
        raise _unknown(card) from None


def points(cards: Iterable[str]) -> int:
    """What these cards count when none of them is melded (G1); `ValueError` as `deadwood_value`."""
    return sum(map(deadwood_value, cards))


def is_meld(cards: Collection[str]) -> bool:
    """Whether these cards, in any order, are one set or one run (G2).

    False also for repeated or unknown cards, so that a declaration can be judged as it came.
    """
    try:
        return card_mask(cards) in _MELDS
    except ValueError:
        return False


def card_mask(cards: Collection[str]) -> int:
    """The cards as a mask of 52 bits, which `mask_deadwood` takes.

    Masks join with `|`, and `mask ^ card_mask([card])` discards. Raises `ValueError` if a card is
    unknown or repeated.
    """
    try:
        mask = sum(map(CARD_BITS.__getitem__, cards))
    except KeyError as error:
        raise _unknown(error.args[0]) from None
    # Adding a bit twice carries, and a carry leaves fewer bits than cards.
    if mask.bit_count() != len(cards):
        raise ValueError(f"expected different cards, got {' '.join(cards)}")
    return mask


def deadwood(cards: Collection[str]) -> int:
    """The least points these cards can leave unmelded, by full search (G1, G2, G9).

    Raises `ValueError` if a card is unknown or repeated.
    """
    return mask_deadwood(card_mask(cards))


def mask_deadwood(mask: int) -> int:
    """Return the `deadwood` of cards given as a `card_mask` (G1, G2, G9)."""
    # In halves, as Python is faster with numbers of up to 30 bits.
    low, high = mask & _TWO_SUITS, mask >> 26
    # A set has both spade and diamond, or both heart and club: many hands have no such pair.
    if both := low & high:
        either = low | high
        if ranks := both & either >> 13 | both >> 13 & either:
            spades, hearts, diamonds, clubs = low & _SUIT, low >> 13, high & _SUIT, high >> 13
            runs = (
                _RUN_CARDS[spades] | _RUN_CARDS[hearts] | _RUN_CARDS[diamonds] | _RUN_CARDS[clubs]
            )
            if contested := ranks & runs:
                # All other sets are taken at once, as no run could use their cards.
                left = contested | ~ranks
                return _least_deadwood(
                    spades & left, hearts & left, diamonds & left, clubs & left, contested
                )
            left = ~ranks
            return (
                _DEADWOOD[spades & left]
                + _DEADWOOD[hearts & left]
                + _DEADWOOD[diamonds & left]
                + _DEADWOOD[clubs & left]
            )
    return (
        _DEADWOOD[low & _SUIT]
        + _DEADWOOD[low >> 13]
        + _DEADWOOD[high & _SUIT]
        + _DEADWOOD[high >> 13]
    )


def discard_deadwoods(hand: Sequence[str]) -> tuple[int, ...]:
    """The deadwood each discard would leave: whether a seat may knock with it (G7).

    Given the eleven cards before the discard, returns for each of them, in the hand's order, the
    `deadwood` of the other ten. Raises `ValueError` if a card is unknown or repeated.
    """
    mask = card_mask(hand)
    return tuple([mask_deadwood(mask ^ CARD_BITS[card]) for card in hand])


def arrange(cards: Collection[str]) -> tuple[tuple[Meld, ...], int]:
    """Melds that leave the least deadwood, by full search, not longest-first (G9).

    Of equals it prefers sets, on which a defender can lay off less: from ace to king,
    a set of four before one of three before none, and of two threes the one with the
    earlier suits (spades, hearts, diamonds, clubs). Neighbours always form one run.

    With eleven cards the discard is not taken off: the result is simply the least that all eleven
    leave unmelded. Raises `ValueError` if a card is unknown or repeated.

    Returns:
        The melds, sets by rank and then runs in deck order, and the deadwood.
    """
    mask = card_mask(cards)
    best = min(_ways_of_taking_sets(mask), key=_deadwood_beside_sets)
    return _melds(mask, best), _deadwood_beside_sets(best)


def lay_off(
    cards: Collection[str], knocker_melds: Sequence[Collection[str]]
) -> tuple[tuple[Layoff, ...], tuple[str, ...]]:
    """Lay unmelded cards off on the knocker's melds so that the least is left (G10).

    Returns the layoffs, each legal once those before it are laid, and the cards left. Raises
    `ValueError` if a card is unknown or repeated, or a meld of the knocker is invalid.
    """
    layoffs, left = _lay_off(card_mask(cards), _table(cards, knocker_melds))
    return layoffs, _cards(left)


def best_defence(
    hand: Collection[str], knocker_melds: Sequence[Collection[str]]
) -> tuple[tuple[Meld, ...], tuple[Layoff, ...], int]:
    """The defender's melds and layoffs with the best final score (G9, G10, G11).

    Least deadwood before layoffs may not be least after them, so all ways of melding
    are laid off. Of equals it takes the one that `arrange` prefers. Against gin nothing
    is laid off: there the best defence is `arrange`. Raises what `lay_off` raises.

    Returns:
        The melds, the layoffs as `lay_off` gives them, and the deadwood still left.
    """
    mask, table = card_mask(hand), _table(hand, knocker_melds)

    def defend(way: int) -> tuple[int, int, tuple[Layoff, ...]]:
        # Melding a whole run costs no layoff: a chain of layoffs through it would stay inside it.
        layoffs, left = _lay_off(way & ~_run_cards(way), table)
        return points(_cards(left)), way, layoffs

    defences = map(defend, _ways_of_taking_sets(mask))
    left, best, layoffs = min(defences, key=lambda defence: defence[0])
    return _melds(mask, best), layoffs, left


def _unknown(card: object) -> ValueError:
    return ValueError(f"expected a card such as 'As' or 'Td', got {card!r}")


def _cards(mask: int) -> tuple[str, ...]:
    cards = []
    while mask:
        bit = mask & -mask  # the lowest
        cards.append(_DECK[bit.bit_length() - 1])
        mask ^= bit
    return tuple(cards)


def _by_suit(mask: int) -> tuple[int, int, int, int]:
    return mask & _SUIT, mask >> 13 & _SUIT, mask >> 26 & _SUIT, mask >> 39


def _ranks_with_a_set(mask: int) -> int:
    """Return the ranks held three or four times, as the bits of one suit."""
    spades, hearts, diamonds, clubs = _by_suit(mask)
    return spades & hearts & (diamonds | clubs) | diamonds & clubs & (spades | hearts)


def _ways_of_taking_sets(mask: int) -> list[int]:
    """Return the cards left for runs by each choice of sets, in `arrange`'s order of preference."""
    ranks = _ranks_with_a_set(mask)
    ways = [mask]
    while ranks:
        rank = ranks & -ranks
        ranks ^= rank
        sets = [cards for cards in _SETS[rank] if cards & mask == cards]
        ways = [way ^ cards for way in ways for cards in sets]
    return ways


def _deadwood_beside_sets(way: int) -> int:
    spades, hearts, diamonds, clubs = _by_suit(way)
    return _DEADWOOD[spades] + _DEADWOOD[hearts] + _DEADWOOD[diamonds] + _DEADWOOD[clubs]


def _least_deadwood(spades: int, hearts: int, diamonds: int, clubs: int, ranks: int) -> int:
    """Return the least deadwood of a hand, given by suit, over all choices of sets of `ranks`."""
    if not ranks:
        return _DEADWOOD[spades] + _DEADWOOD[hearts] + _DEADWOOD[diamonds] + _DEADWOOD[clubs]
    rank = ranks & -ranks
    others = ranks ^ rank
    s, h, d, c = spades & ~rank, hearts & ~rank, diamonds & ~rank, clubs & ~rank
    if others:
        without_set = _least_deadwood(spades, hearts, diamonds, clubs, others)
        with_set = _least_deadwood(s, h, d, c, others)
    else:
        without_set = _DEADWOOD[spades] + _DEADWOOD[hearts] + _DEADWOOD[diamonds] + _DEADWOOD[clubs]
        with_set = _DEADWOOD[s] + _DEADWOOD[h] + _DEADWOOD[d] + _DEADWOOD[c]
    least = without_set if without_set < with_set else with_set
    if not rank & spades & hearts & diamonds & clubs:
        return least
    # Of four equal ranks, one card may go into a run.
    for ways in ((spades, h, d, c), (s, hearts, d, c), (s, h, diamonds, c), (s, h, d, clubs)):
        with_three = _least_deadwood(*ways, others)
        if with_three < least:
            least = with_three
    return least


def _melds(mask: int, way: int) -> tuple[Meld, ...]:
    """Return the sets that were taken out of `mask` to leave `way`, and the runs in `way`."""
    melds = []
    in_sets = mask ^ way
    ranks = _ranks_with_a_set(in_sets)
    while ranks:
        rank = ranks & -ranks
        ranks ^= rank
        melds.append(_cards(in_sets & _ONE_RANK * rank))
    for suit, held in enumerate(_by_suit(way)):
        runs = _RUN_CARDS[held]
        while runs:
            # Adding the lowest card carries through its neighbours, which form one run.
            run = runs & ~(runs + (runs & -runs))
            runs ^= run
            melds.append(_cards(run << 13 * suit))
    return tuple(melds)


def _table(cards: Collection[str], knocker_melds: Sequence[Collection[str]]) -> tuple[int, ...]:
    """Return the knocker's melds as masks, after checking them."""
    card_mask([*cards, *chain.from_iterable(knocker_melds)])
    for meld in knocker_melds:
        if not is_meld(meld):
            raise ValueError(f"expected a set or a run, got {' '.join(meld)}")
    return tuple(map(card_mask, knocker_melds))


def _lay_off(mask: int, table: Sequence[int]) -> tuple[tuple[Layoff, ...], int]:
    """Lay off all that can be: on runs as far as they go, only then on sets.

    No order leaves less. A set of three takes one certain card and nothing after it,
    while the same card on a run may open the way for the next. Two runs never compete:
    a card that fits both fills the gap between them and opens nothing.
    """
    layoffs: list[Layoff] = []
    in_set = [meld not in _RUNS for meld in table]
    for index in sorted(range(len(table)), key=in_set.__getitem__):
        meld = table[index]
        while fitting := mask & _fitting(meld):
            layoffs += [(card, index) for card in _cards(fitting)]
            meld |= fitting
            mask ^= fitting
    return tuple(layoffs), mask


@cache
def _fitting(meld: int) -> int:
    """Return the cards that may be laid off on a meld now: for a run, one at each end."""
    return sum(bit for bit in CARD_BITS.values() if bit & ~meld and meld | bit in _MELDS)
