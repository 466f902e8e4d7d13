"""Measures how good a blackjack player is: exactly from a fresh deck, estimated in whole matches.

The bot is asked how it plays, from a fresh deck, every hand that it may reach. The likeliest hands
are asked again in another order and with another bankroll. If the bot then answers differently, it
plays randomly dealt hands, and its loss against the best play is averaged.

The values from a fresh deck and in whole matches are two different quantities. From a fresh deck
every hand begins with all 52 cards. In a match the deck is dealt until fewer than 20 cards are
left. More hands come from a deck whose low cards come first, and low cards are bad for the player:
the cut-card effect. So the two values must not be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from math import comb, sqrt
from random import Random
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from scipy.special import stdtrit  # type: ignore[import-untyped]

from arena.games.analysis import (
    Analyser,
    Analysis,
    Certainty,
    Chart,
    ChartCell,
    Figure,
    ProbedMatch,
    ProbeMatch,
    SeatMatch,
    Weakness,
    heard_by,
)
from arena.games.blackjack.evaluator import COLUMNS, BlackjackEvaluator, ChartPlace, laid_out
from arena.games.blackjack.rules import RESHUFFLE_BELOW, match, payoff
from arena.games.blackjack.values import (
    COST_NOTE,
    COST_UNIT,
    FULL,
    UPCARDS,
    FreshDeck,
    FreshPlay,
    Hands,
    Place,
    counted,
    fresh_deck,
)
from arena.games.evaluator import CellMeter, ChanceMeter, Tally
from arena.games.rules import AskSeat, Rules, Scoreboard, TellSeat
from protocol.blackjack import MINIMUM, NEW_DECK, POINTS, Bet, BlackjackSettings, Draw
from protocol.cards import Card
from protocol.errors import NoAnalysis

__all__ = [
    "FreshHands",
    "HandAnswer",
    "Path",
    "WholeMatches",
    "differing",
    "found_adapting",
    "is_mixed",
    "mean_of",
    "probe",
    "starts",
    "watch",
]

Path: TypeAlias = tuple[int, ...]
"""The points of the upcard, then of the player's cards in dealing order; empty for any hand."""
Answers: TypeAlias = Mapping[Place, Sequence["HandAnswer"]]
_Asking: TypeAlias = Generator[ProbeMatch, ProbedMatch, None]

_AGAIN = 3  # hands of at most this many cards are asked a second time
_RICHER = 100  # the factor for the bankroll in the second asking
_RICHEST = 1_000_000_000
_LEAST_HANDS = 1000  # per made-up match, so that a bot's process plays few matches
_HANDS = 10_000  # per estimate: with bets of 5 the error is below 0.02 chips a hand
_MATCHES = 1000  # at most, for these hands
_OTHERWISE = (
    "With {} of {} hands it did something else when it was asked again in another order and from "
    "another bankroll."
)

_VALUE = "value from a fresh deck"
_OF_BET = "% of the bet"
_CHIPS = "chips a hand"
_EVEN = "For even bets; at odd ones a natural is rounded down (B8)."
_BLOCK = 50  # hands per value of a sample
_FEWEST = 20  # values that an interval needs
_TAIL = 0.025

ALARM = 0.01  # the probability that a bot which only mixes is called adaptive
_OF = {
    "is_rich": "its bankroll",
    "is_late": "how long the match has gone on",
    "after_loss": "whether it lost the hand before",
    "is_raised": "its bet",
}


class HandAnswer(NamedTuple):
    """What a bot did with a hand, and under which circumstances.

    Attributes:
        hits: whether it hit.
        is_rich: whether it had the larger bankroll.
        is_late: whether a quarter of the longest match was over.
        after_loss: whether it had lost the hand before.
        is_raised: whether it had bet more than the minimum.
    """

    hits: bool
    is_rich: bool
    is_late: bool
    after_loss: bool
    is_raised: bool


def probe(settings: BlackjackSettings, seed: int, opponents: Sequence[str]) -> Analyser:
    """Ask a bot what it does with every hand, and let it play whole matches."""
    if opponents:
        raise NoAnalysis("blackjack is played against the dealer alone: analyse each bot by itself")
    random, fresh = Random(seed), fresh_deck()
    hands = fresh.hands
    fair = msgspec.structs.replace(settings, shuffle="uniform")
    long = msgspec.structs.replace(fair, hands=max(settings.hands, _LEAST_HANDS))
    rich = msgspec.structs.replace(long, bankroll=min(settings.bankroll * _RICHER, _RICHEST))

    first = FreshHands(hands, starts(hands), random, is_exploring=True)
    yield from _ask(first, long)
    again = [
        (upcard, *hands.cards_of(hand))
        for upcard, hand in first.answers
        if hands.cards[hand] <= _AGAIN
    ]
    second = FreshHands(hands, again, random)
    yield from _ask(second, rich)
    others, of = differing(first.answers, second.answers)
    mixes = is_mixed(first.answers) or is_mixed(second.answers)
    is_same = not others and not mixes
    further = [] if is_same else (yield from _as_they_come(hands, random, long, rich))
    matches = WholeMatches(hands, 2 * _HANDS)
    for number in range(_MATCHES):
        if len(matches.won) < _HANDS:
            yield ProbeMatch(settings=fair, rules=matches.rules, seed=seed + number)
    if is_same and matches.surprises(first.answers):
        # The bot counts cards, or it mixes so rarely that the two askings did not show it.
        further = yield from _as_they_come(hands, random, long, rich)
        mixes = is_mixed(_together(first, *further))
        is_same = not mixes
    if is_same:
        answers: Answers = first.answers
        adapts, play = "", _as_answered(fresh, answers)
        value = from_fresh(fresh.value(play.shares))
    else:
        answers = _together(*further)
        play, value = _as_played(fresh, [hand for part in further for hand in part.played])
        adapts = found_adapting(fresh, answers) if mixes else _OTHERWISE.format(others, of)
    bet = first.bets.most_common(1)[0][0]
    return Analysis(
        figures=(
            value,
            *best_and_given(fresh, float(play.losses.sum()), value),
            at_bet(fresh, value, bet),
            in_matches(matches.won, matches.bets, _differs(first, matches, bet, is_same)),
        ),
        weaknesses=_weaknesses(fresh, play),
        charts=_charts(fresh.cells(play, _counted(hands, answers), is_exact=is_same)),
        adapts=adapts,
        asked=matches.asked + sum(part.asked for part in (first, second, *further)),
    )


def _ask(hands: FreshHands, settings: BlackjackSettings) -> _Asking:
    while not hands.is_done:
        yield ProbeMatch(settings=settings, rules=hands.rules)


def _as_they_come(
    hands: Hands, random: Random, long: BlackjackSettings, rich: BlackjackSettings
) -> Generator[ProbeMatch, ProbedMatch, list[FreshHands]]:
    """Deal random hands from fresh decks, half of them with the larger bankroll."""
    parts = []
    for settings in long, rich:
        part = FreshHands(hands, [()] * (_HANDS // 2), random, is_rich=settings is rich)
        yield from _ask(part, settings)
        parts.append(part)
    return parts


def _together(*parts: FreshHands) -> Answers:
    found: dict[Place, list[HandAnswer]] = {}
    for part in parts:
        for place, of in part.answers.items():
            found.setdefault(place, []).extend(of)
    return found


def _as_answered(fresh: FreshDeck, answers: Answers) -> FreshPlay:
    """The play of a bot that always answers a hand in the same way."""
    shares = fresh.best.copy()
    for (upcard, hand), of in answers.items():
        shares[upcard - 1, hand] = of[0].hits
    return fresh.played(shares)


def _as_played(
    fresh: FreshDeck, played: Sequence[Sequence[tuple[Place, bool]]]
) -> tuple[FreshPlay, Figure]:
    """The play in random hands, and its value: the best play's minus the mean loss per hand."""
    hits, reached, losses = (np.zeros_like(fresh.best) for _ in range(3))
    lost = []
    for decisions in played:
        lost.append(0.0)
        for (upcard, hand), hit in decisions:
            at = upcard - 1, hand
            regret = float(fresh.regret[at]) if hit != fresh.best[at] else 0.0
            hits[at] += hit
            reached[at] += 1
            losses[at] += regret
            lost[-1] += regret
    shares = np.where(reached > 0, hits / np.maximum(reached, 1), fresh.best)
    best = fresh.value(fresh.best)
    found = mean_of([best - each for each in lost])
    assert found is not None, "they are hands enough"
    play = FreshPlay(shares, reached / len(played), losses / len(played))
    return play, from_fresh(found[0], Certainty.ESTIMATE, found[1:])


def _differs(first: FreshHands, matches: WholeMatches, bet: int, is_same: bool) -> str:
    """Say how the bot bets or plays differently in matches; empty if it does not."""
    words = ""
    if others := sum(each != bet for each in matches.bets):
        words += f" In {others} of {len(matches.bets)} hands it bet something else than {bet}."
    surprises = matches.surprises(first.answers) if is_same else 0
    if surprises:
        words += (
            f" In {surprises} of {len(matches.answers)} decisions it did something else than from "
            "a fresh deck: what came before matters to it."
        )
    return words


def watch(matches: Iterable[SeatMatch]) -> Analysis:
    """Analyse a bot from matches that it has played."""
    habits = CellMeter(BlackjackEvaluator)
    won: list[float] = []
    bets: list[int] = []
    asked = 0
    for seen in matches:
        heard_by(seen, habits)
        settings = seen.settings
        assert isinstance(settings, BlackjackSettings), "they are matches of blackjack"
        if settings.shuffle == "uniform":
            won += _without_luck(settings, seen)
            bets += (each.answer for each in seen.decisions if type(each.question) is Bet)
        asked += len(seen.decisions)
    tally = habits.tally
    if not tally.asked:
        raise NoAnalysis("it was never asked whether to hit")
    fresh = fresh_deck()
    play = fresh.played(fresh.seen(tally))
    missing = len(fresh.reachable(play) - tally.asked.keys())
    if missing:
        value, further = not_seen(missing), " Places that were not seen count as played best."
    else:
        band = fresh.band(tally)
        value, further = from_fresh(fresh.value(play.shares), Certainty.PROBED, band), ""
    return Analysis(
        figures=(
            value,
            *best_and_given(fresh, float(play.losses.sum()), value, further),
            in_matches(won, bets, ""),
        ),
        weaknesses=_weaknesses(fresh, play),
        charts=_charts(fresh.cells(play, tally)),
        asked=asked,
    )


def _without_luck(settings: BlackjackSettings, seen: SeatMatch) -> list[float]:
    """What each hand won without luck, computed from what the seat was told."""
    meter = ChanceMeter(BlackjackEvaluator(settings))
    for decision in seen.decisions:
        for news in decision.news:
            meter.told(TellSeat(0, news))
        meter.answered(AskSeat(0, decision.question), decision.answer)
    for news in seen.news:
        meter.told(TellSeat(0, news))
    return [each.gains[0] - each.luck[0] for each in meter.rounds]


# ---- Charts and figures


def _charts(cell: Callable[[ChartPlace], ChartCell]) -> tuple[Chart, ...]:
    return laid_out(cell, COST_UNIT, COST_NOTE)


def _counted(hands: Hands, answers: Answers) -> Tally:
    tally = Tally()
    for (upcard, hand), of in answers.items():
        for each in of:
            tally.add((hands.soft[hand], hands.totals[hand], upcard), each.hits)
    return tally


def _weaknesses(fresh: FreshDeck, play: FreshPlay) -> tuple[Weakness, ...]:
    """The cells in which the bot loses anything, the most costly first."""
    shares, reached, losses = play
    best = fresh.best
    found = []
    for (is_soft, total), hands in fresh.rows.items():
        for label, upcard in COLUMNS.items():
            at = np.ix_([upcard - 1], hands)
            cost = float(losses[at].sum())
            if cost > 0:
                weight = reached[at] / reached[at].sum()
                kind = "soft" if is_soft else "hard"
                found.append(
                    Weakness(
                        spot=f"{kind} {total} against {label}",
                        played=_in_words(float((weight * shares[at]).sum())),
                        best=_in_words(float((weight * best[at]).sum()), ", by its cards"),
                        cost=100 * cost,
                    )
                )
    return tuple(sorted(found, key=lambda weakness: -weakness.cost))


def _in_words(share: float, more: str = "") -> str:
    """Describe the play in a cell: `stands`, `hits` or `hits 12.3%`."""
    percent = f"{share:.1%}"
    return {"0.0%": "stands", "100.0%": "hits"}.get(percent, f"hits {percent}{more}")


def mean_of(values: Sequence[float]) -> tuple[float, float, float] | None:
    """The mean over hands and its 95 % interval, from blocks; None if there are too few blocks."""
    blocks = [fmean(values[at : at + _BLOCK]) for at in range(0, len(values) - _BLOCK + 1, _BLOCK)]
    if len(blocks) < _FEWEST:
        return None
    mean = fmean(blocks)
    width = float(stdtrit(len(blocks) - 1, 1 - _TAIL)) * stdev(blocks) / sqrt(len(blocks))
    return mean, mean - width, mean + width


def from_fresh(
    value: float, certainty: Certainty = Certainty.EXACT, band: tuple[float, float] | None = None
) -> Figure:
    """The figure for a bot's value from a fresh deck, given per chip of the bet."""
    low, high = (None, None) if band is None else (100 * band[0], 100 * band[1])
    return Figure(
        name=_VALUE,
        value=100 * value,
        unit=_OF_BET,
        certainty=certainty,
        low=low,
        high=high,
        remark=_EVEN,
    )


def not_seen(cells: int) -> Figure:
    """The figure that says why a bot has no value: some cells were never asked."""
    return Figure(
        name=_VALUE,
        value=None,
        unit=_OF_BET,
        certainty=Certainty.PROBED,
        remark=f"It was never asked in {cells} places of the chart that it may come to (not seen).",
    )


def best_and_given(
    fresh: FreshDeck, lost: float, value: Figure, further: str = ""
) -> tuple[Figure, Figure]:
    """The figures of the best play and of the distance from it; `lost` is per chip of the bet."""
    best = 100 * fresh.value(fresh.best)
    return (
        Figure(name="best play from a fresh deck", value=best, unit=_OF_BET, remark=_EVEN),
        Figure(
            name="given away from a fresh deck",
            value=100 * lost,
            unit=_OF_BET,
            certainty=value.certainty,
            low=None if value.high is None else max(0.0, best - value.high),
            high=None if value.low is None else best - value.low,
            remark=f"The distance from the best play; the costs of mistakes sum to it.{further}",
        ),
    )


def at_bet(fresh: FreshDeck, figure: Figure, bet: int) -> Figure:
    """Convert a value in per cent of the bet to chips, for this bet."""
    less = fresh.naturals * (payoff("natural", bet) - bet * payoff("natural", 2) / 2)
    chips = [
        None if percent is None else bet * percent / 100 + less
        for percent in (figure.value, figure.low, figure.high)
    ]
    return msgspec.structs.replace(
        figure,
        name=f"{_VALUE}, with a bet of {bet}",
        unit=_CHIPS,
        value=chips[0],
        low=chips[1],
        high=chips[2],
        remark=f"Its usual bet from a fresh deck; a natural pays {payoff('natural', bet)}.",
    )


def in_matches(won: Sequence[float], bets: Sequence[int], further: str) -> Figure:
    """The figure for what the bot won per hand in whole matches, without luck."""
    name = "won in whole matches, without luck"
    found = mean_of(won)
    if found is None:
        return Figure(
            name=name,
            value=None,
            unit=_CHIPS,
            remark=f"{len(won)} hands after fair shuffles are too few to say; it takes "
            f"{_BLOCK * _FEWEST}.",
        )
    mean, low, high = found
    return Figure(
        name=name,
        value=mean,
        unit=_CHIPS,
        certainty=Certainty.ESTIMATE,
        low=low,
        high=high,
        remark=f"Decks are dealt down to {RESHUFFLE_BELOW} cards, so this is not the value from a "
        f"fresh deck (cut-card effect). Bets were {min(bets)} to {max(bets)}, {fmean(bets):.1f} on "
        f"average.{further}",
    )


# ---- Whether it mixes or adapts


def is_mixed(answers: Answers) -> bool:
    """Whether a bot both hit and stood with the same hand."""
    return any(len({answer.hits for answer in of}) > 1 for of in answers.values())


def differing(first: Answers, second: Answers) -> tuple[int, int]:
    """How many hands the bot answered differently the second time, out of how many."""
    both = [(of, second[place]) for place, of in first.items() if place in second]
    return sum({a.hits for a in of} != {b.hits for b in others} for of, others in both), len(both)


def found_adapting(fresh: FreshDeck, answers: Answers) -> str:
    """Say what a bot's hits depend on besides the hand; empty if it only mixes.

    For every cell and condition, hits with the condition are compared with hits without, hand by
    hand. If the condition does not matter, the split is random (with Bonferroni's correction).
    """
    cells: dict[ChartPlace, list[Sequence[HandAnswer]]] = {}
    for (upcard, hand), of in answers.items():
        cell = fresh.hands.soft[hand], fresh.hands.totals[hand], upcard
        cells.setdefault(cell, []).append(of)
    tests = len(cells) * len(_OF)
    for condition, words in _OF.items():
        if any(_chance(cell, condition) * tests < ALARM for cell in cells.values()):
            return f"How often it hits depends on {words}."
    return ""


def _chance(hands: Sequence[Sequence[HandAnswer]], condition: str) -> float:
    """The exact probability that chance alone splits the hits over the two sides so unevenly."""
    hits, likely = 0, np.ones(1)
    for of in hands:
        under = [answer.hits for answer in of if getattr(answer, condition)]
        every = sum(answer.hits for answer in of)
        hits += sum(under)
        likely = np.convolve(likely, [*_hypergeometric(len(under), every, len(of))])
    return float(likely[likely <= likely[hits] * (1 + 1e-9)].sum())


def _hypergeometric(drawn: int, marked: int, of: int) -> Iterator[float]:
    for each in range(min(drawn, marked) + 1):
        yield comb(marked, each) * comb(of - marked, drawn - each) / comb(of, drawn)


# ---- What is asked


def starts(hands: Hands) -> list[Path]:
    """All two-card hands except naturals, against all upcards."""
    return [
        (upcard, first, second)
        for upcard in UPCARDS
        for first in UPCARDS
        for second in range(first, 11)
        if (first, second) != (1, 10)
    ]


class FreshHands:
    """Asks a bot what it does with certain hands, each dealt from a fresh deck.

    With `is_exploring` it also asks the hands that the bot reaches by hitting, until all are asked.
    `is_rich` is noted with every answer.

    Attributes:
        answers: by hand, the bot's answers, one for each time that it was asked.
        played: for each dealt hand, the bot's decisions in order.
        bets: how often the bot made each bet.
    """

    def __init__(
        self,
        hands: Hands,
        paths: Iterable[Path],
        random: Random,
        *,
        is_exploring: bool = False,
        is_rich: bool = False,
    ) -> None:
        self.answers: dict[Place, list[HandAnswer]] = {}
        self.played: list[list[tuple[Place, bool]]] = []
        self.bets: Counter[int] = Counter()
        self._hands = hands
        self._after: list[list[int]] = hands.after.tolist()
        self._counts = list(hands.index)
        self._random, self._is_exploring, self._is_rich = random, is_exploring, is_rich
        self._state = False, False, False
        self._todo = list(paths)
        random.shuffle(self._todo)

    @property
    def asked(self) -> int:
        return self.bets.total() + sum(map(len, self.answers.values()))

    @property
    def is_done(self) -> bool:
        if self._is_exploring:
            while self._todo and self._place(self._todo[-1]) in self.answers:
                self._todo.pop()
        return not self._todo

    def rules(self, settings: BlackjackSettings, deals: Iterator[Any], board: Scoreboard) -> Rules:
        """Play a match of these hands, until all are asked."""
        bankroll, paid = settings.bankroll, 0
        for number in range(1, settings.hands + 1):
            if bankroll < MINIMUM or self.is_done:
                break
            self.played.append([])
            self._state = self._is_rich, number > settings.hands // 4, paid < 0
            one = msgspec.structs.replace(settings, bankroll=bankroll, hands=1, shuffle="uniform")
            hand = Scoreboard(1)
            yield from self._noted(match(one, iter([self._deck(self._todo.pop())]), hand), number)
            paid = hand.scores[0]
            bankroll += paid
            board.scores[0] = bankroll - settings.bankroll

    def _noted(self, rules: Rules, number: int) -> Rules:
        """Play hand number `number` of the match and note the bot's answers."""
        bet = 0
        for step in rules:
            while type(step) is AskSeat:
                question = step.question
                if type(question) is Bet:
                    question = msgspec.structs.replace(question, round=number)
                answer = yield AskSeat(step.seat, question)
                if type(question) is Bet:
                    bet = answer
                    self.bets[bet] += 1
                else:
                    assert type(question) is Draw, "rules B ask nothing else"
                    self._note(question, HandAnswer(answer == "hit", *self._state, bet > MINIMUM))
                step = rules.send(answer)
            yield step

    def _note(self, question: Draw, answer: HandAnswer) -> None:
        upcard = POINTS[question.upcard]
        place = upcard, self._hands.index[counted(question.hand)]
        self.answers.setdefault(place, []).append(answer)
        self.played[-1].append((place, answer.hits))
        if answer.hits and self._is_exploring:
            path = (upcard, *(POINTS[card] for card in question.hand))
            self._todo += [(*path, card) for card, _ in self._unasked(place)]

    def _unasked(self, place: Place) -> list[tuple[int, Place]]:
        """The cards that turn this hand into one that was not asked yet."""
        upcard, hand = place
        counts, after = self._counts[hand], self._after[hand]
        return [
            (card, (upcard, after[card - 1]))
            for card in UPCARDS
            if after[card - 1] < len(self._after)
            and counts[card - 1] + (card == upcard) < FULL[card - 1]
            and (upcard, after[card - 1]) not in self.answers
        ]

    def _place(self, path: Path) -> Place:
        hand = 0
        for card in path[1:]:
            hand = self._after[hand][card - 1]
        return path[0], hand

    def _deck(self, path: Path) -> list[Card]:
        """A deck that deals this hand, then cards that lead to hands that were not asked yet."""
        rest = list(NEW_DECK)
        self._random.shuffle(rest)
        if not path:
            return rest
        upcard, *player = path
        if self._random.random() < 0.5:
            player[:2] = player[1::-1]
        if self._is_exploring:
            more, place = [(0, (0, 0))], self._place(path)
            while more := self._unasked(place):
                card, place = self._random.choice(more)
                player.append(card)
        front = [_taken(rest, points) for points in (player[0], upcard, *player[1:])]
        front.insert(3, rest.pop())
        return front + rest


def _taken(cards: list[Card], points: int) -> Card:
    return cards.pop(next(at for at, card in enumerate(cards) if POINTS[card] == points))


class WholeMatches:
    """Plays whole matches with fair shuffles, and measures the luck of the cards.

    A match stops early once all matches together have `most` hands.

    Attributes:
        won: by hand, what it won without luck, in chips.
        bets: by hand.
        answers: for each decision, the hand and whether the bot hit.
    """

    def __init__(self, hands: Hands, most: int) -> None:
        self.won: list[float] = []
        self.bets: list[int] = []
        self.answers: list[tuple[Place, bool]] = []
        self._hands, self._most = hands, most

    @property
    def asked(self) -> int:
        return len(self.bets) + len(self.answers)

    def surprises(self, answers: Mapping[Place, Sequence[HandAnswer]]) -> int:
        """How often the bot decided differently from its first answer for the same hand."""
        return sum(hits != answers[at][0].hits for at, hits in self.answers if at in answers)

    def rules(self, settings: BlackjackSettings, deals: Iterator[Any], board: Scoreboard) -> Rules:
        meter = ChanceMeter(BlackjackEvaluator(settings))
        for step in (rules := match(settings, deals, board)):
            while type(step) is AskSeat:
                if type(step.question) is Bet and len(self.bets) == self._most:
                    self._measured(meter)
                    return
                answer = yield step
                meter.answered(step, answer)
                self._note(step.question, answer)
                step = rules.send(answer)
            assert type(step) is TellSeat, "rules yield nothing else"
            meter.told(step)
            yield step
        self._measured(meter)

    def _measured(self, meter: ChanceMeter) -> None:
        self.won += (each.gains[0] - each.luck[0] for each in meter.rounds)

    def _note(self, question: Any, answer: Any) -> None:
        if type(question) is Bet:
            self.bets.append(answer)
        else:
            place = POINTS[question.upcard], self._hands.index[counted(question.hand)]
            self.answers.append((place, answer == "hit"))
