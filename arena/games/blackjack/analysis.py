"""How good a player of blackjack is: exactly from a fresh deck, and by estimate in whole matches.

What a bot does from a fresh deck is asked for every hand that it may reach, and for the likeliest
again in another order and from another bankroll. If it then does something else, it is asked to
play hands as they come, and what it loses against the best play is averaged.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from random import Random
from typing import TypeAlias

import msgspec
import numpy as np

from arena.games.analysis import (
    Analyser,
    Analysis,
    Certainty,
    Figure,
    ProbedMatch,
    ProbeMatch,
    SeatMatch,
    heard_by,
)
from arena.games.blackjack.adapting import differing, found_adapting, is_mixed
from arena.games.blackjack.charts import Chartable
from arena.games.blackjack.figures import (
    at_bet,
    best_and_given,
    from_fresh,
    in_matches,
    mean_of,
    not_seen,
)
from arena.games.blackjack.habits import BlackjackHabits
from arena.games.blackjack.luck import BlackjackLuckMeter
from arena.games.blackjack.probe import FreshHands, HandAnswer, WholeMatches, starts
from arena.games.blackjack.values import FreshDeck, FreshPlay, Hands, Place, fresh_deck
from arena.games.rules import AskSeat, TellSeat
from protocol.blackjack import Bet, BlackjackSettings
from protocol.errors import NoAnalysis

__all__ = ["probe", "watch"]

_Answers: TypeAlias = Mapping[Place, Sequence[HandAnswer]]
_Asking: TypeAlias = Generator[ProbeMatch, ProbedMatch, None]

_AGAIN = 3  # hands of so many cards are asked again
_RICHER = 100  # times the bankroll then
_RICHEST = 1_000_000_000
_LEAST_HANDS = 1000  # of a made-up match, so that a process is not told of thousands of matches
_HANDS = 10_000  # of an estimate: with bets of 5 it is within 0.02 chips a hand
_MATCHES = 1000  # for them at most
_OTHERWISE = (
    "With {} of {} hands it did something else when it was asked again in another order and from "
    "another bankroll."
)


def probe(settings: BlackjackSettings, seed: int, opponents: Sequence[str]) -> Analyser:
    """Ask a bot what it does with every hand, and let it play whole matches."""
    if opponents:
        raise NoAnalysis("blackjack is played against the dealer alone: analyse each bot by itself")
    random, fresh = Random(seed), fresh_deck()
    hands, chartable = fresh.hands, Chartable(fresh)
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
        # It counts cards, or what it does rarely was not seen when it was asked twice.
        further = yield from _as_they_come(hands, random, long, rich)
        mixes = is_mixed(_together(first, *further))
        is_same = not mixes
    if is_same:
        answers: _Answers = first.answers
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
        weaknesses=chartable.weaknesses(play),
        charts=chartable.charts(play, chartable.counted(answers), is_exact=is_same),
        adapts=adapts,
        asked=matches.asked + sum(part.asked for part in (first, second, *further)),
    )


def _ask(hands: FreshHands, settings: BlackjackSettings) -> _Asking:
    while not hands.is_done:
        yield ProbeMatch(settings=settings, rules=hands.rules)


def _as_they_come(
    hands: Hands, random: Random, long: BlackjackSettings, rich: BlackjackSettings
) -> Generator[ProbeMatch, ProbedMatch, list[FreshHands]]:
    """Have hands played from fresh decks, half of them with many chips."""
    parts = []
    for settings in long, rich:
        part = FreshHands(hands, [()] * (_HANDS // 2), random, is_rich=settings is rich)
        yield from _ask(part, settings)
        parts.append(part)
    return parts


def _together(*parts: FreshHands) -> _Answers:
    found: dict[Place, list[HandAnswer]] = {}
    for part in parts:
        for place, of in part.answers.items():
            found.setdefault(place, []).extend(of)
    return found


def _as_answered(fresh: FreshDeck, answers: _Answers) -> FreshPlay:
    """The play of a bot that always answers the same."""
    shares = fresh.best.copy()
    for (upcard, hand), of in answers.items():
        shares[upcard - 1, hand] = of[0].hits
    return fresh.played(shares)


def _as_played(
    fresh: FreshDeck, played: Sequence[Sequence[tuple[Place, bool]]]
) -> tuple[FreshPlay, Figure]:
    """The play in hands as they came, and its value: that of the best less what the hands lost."""
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
    """Whether a bot bets or plays otherwise in matches than it does from a fresh deck."""
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
    """What can be said of a bot from matches that it has played."""
    habits = BlackjackHabits()
    won: list[float] = []
    bets: list[int] = []
    asked = 0
    for match in matches:
        heard_by(match, habits)
        settings = match.settings
        assert isinstance(settings, BlackjackSettings), "they are matches of blackjack"
        if settings.shuffle == "uniform":
            won += _without_luck(settings, match)
            bets += (each.answer for each in match.decisions if type(each.question) is Bet)
        asked += len(match.decisions)
    if not habits.asked:
        raise NoAnalysis("it was never asked whether to hit")
    fresh = fresh_deck()
    chartable = Chartable(fresh)
    play = fresh.played(chartable.seen(habits.asked))
    missing = len(chartable.reachable(play) - habits.asked.keys())
    if missing:
        value, further = not_seen(missing), " Places that were not seen count as played best."
    else:
        band = chartable.band(habits.asked)
        value, further = from_fresh(fresh.value(play.shares), Certainty.PROBED, band), ""
    return Analysis(
        figures=(
            value,
            *best_and_given(fresh, float(play.losses.sum()), value, further),
            in_matches(won, bets, ""),
        ),
        weaknesses=chartable.weaknesses(play),
        charts=chartable.charts(play, habits.asked),
        asked=asked,
    )


def _without_luck(settings: BlackjackSettings, match: SeatMatch) -> list[float]:
    """What each hand brought without luck; all that measures it, the seat was told."""
    meter = BlackjackLuckMeter(settings)
    for decision in match.decisions:
        for news in decision.news:
            meter.told(TellSeat(0, news))
        meter.answered(AskSeat(0, decision.question), decision.answer)
    for news in match.news:
        meter.told(TellSeat(0, news))
    return [each.gains[0] - each.luck[0] for each in meter.rounds]
