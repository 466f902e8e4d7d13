"""Estimates what a bot gives away in a game without exact values, by judging its decisions.

Some games have an analysis of their own; this one works for every game whose decisions can be
judged. The bot plays against the house bots in turn, and no figure is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from arena.games.analysis import (
    Analyser,
    Analysis,
    Certainty,
    Figure,
    ProbeMatch,
    SeatMatch,
    Weakness,
)
from arena.games.match import Record
from arena.games.rules import Game
from arena.games.statistics import MeanPart, Sample, mean_of
from arena.lab.in_process import derived_seed, entrant
from arena.lab.probe import begin
from arena.records.habits import habits_of
from arena.records.mistakes import JudgedDecision, judged, judging_of
from arena.records.seat_document import seat_match
from protocol.errors import NoAnalysis
from protocol.strategy import house_bots
from protocol.vocabulary import Settings

__all__ = ["estimated"]

_MATCHES = 24  # in total, equally many against each house bot
_SLOW_MATCHES = 10  # if judging a match takes seconds
_LEFT_OUT = "Mistakes that cannot be told from the best answer are left out."


def estimated(game: Game, settings: Settings, seed: int, reason: str) -> Analyser:
    """Estimate what a bot gives away; `reason` is why it has no exact value.

    Raises `NoAnalysis` if decisions cannot be judged in this game or with these settings, or the
    game has no house bots.
    """
    judging, opponents = judging_of(game, settings), tuple(house_bots(game.name))
    if not opponents:
        raise NoAnalysis(f"{reason}, and there is no house bot to play against")
    matches = _SLOW_MATCHES if judging.is_slow else _MATCHES
    each = max(1, matches // len(opponents))
    return _played(game, settings, seed, reason, opponents, each)


def _played(
    game: Game, settings: Settings, seed: int, reason: str, opponents: tuple[str, ...], each: int
) -> Analyser:
    played: list[tuple[Record, int]] = []
    for number, opponent in enumerate(opponents * each):
        # Shift by one each turn; else with as many opponents as seats each would meet one seat.
        seat = (number + number // len(opponents)) % game.seats
        maker = entrant(game, opponent)
        others = tuple(maker.make(f"{seed}:{number}:{place}") for place in range(1, game.seats))
        cards = derived_seed(seed, number)
        probe = ProbeMatch(settings=settings, seat=seat, others=others, seed=cards)
        probed, match = (yield probe), begin(game, probe)
        for answer in probed.answers:
            match.answer(answer)
        played.append((match.result().record, seat))
    # Judge after all matches: a program must not wait long for its next match.
    return _judged(game, played, reason, ", ".join(opponents))


def _judged(
    game: Game, played: Sequence[tuple[Record, int]], reason: str, opponents: str
) -> Analysis:
    name = game.vocabulary.round if game.unit is None else game.unit.name
    if not any(record.answers for record, _ in played):
        raise NoAnalysis(f"{reason}, and with these settings nothing is asked")
    matches = [seat_match(record, seat) for record, seat in played]
    found = [list(judged(record, seat)) for record, seat in played]
    costs = Sample()
    for match, decisions in zip(matches, found, strict=True):
        for cost in _by_unit(game, match, decisions):
            costs.add(cost)
    decisions = [decision for together in found for decision in together]
    unit = decisions[0].judgement.unit if decisions else ""
    part = MeanPart(1.0, costs.mean or 0.0, costs.variance, costs.count)
    interval = mean_of([part])
    given_away = Figure(
        name="given away",
        value=costs.mean,
        unit=f"{unit} a {name}",
        certainty=Certainty.ESTIMATE,
        low=None if interval is None else max(0.0, interval.low),
        high=None if interval is None else interval.high,
        remark=f"Estimated from {costs.count:,} {name}s against {opponents}. {_LEFT_OUT}",
    )
    return Analysis(
        figures=(given_away, Figure(name="value", value=None, remark=reason)),
        weaknesses=_weaknesses(decisions, costs.count),
        charts=() if game.habits is None else habits_of(game, matches).charts,
        asked=sum(len(match.decisions) for match in matches),
    )


def _by_unit(game: Game, match: SeatMatch, decisions: Sequence[JudgedDecision]) -> list[float]:
    """Return the total cost of the mistakes in each game or round of a match."""
    closes = game.vocabulary.closes if game.unit is None else game.unit.closes
    heard = [*match.news, *(news for decision in match.decisions for news in decision.news)]
    costs = [0.0] * sum(type(news) is closes for news in heard)
    for decision in decisions:
        if decision.is_mistake and decision.unit <= len(costs):
            costs[decision.unit - 1] += decision.judgement.cost
    return costs


def _weaknesses(decisions: Sequence[JudgedDecision], units: int) -> tuple[Weakness, ...]:
    """Return what mistakes at each kind of question cost per game or round."""
    kinds: dict[str, list[JudgedDecision]] = {one.question.kind: [] for one in decisions}
    for one in decisions:
        kinds[one.question.kind].append(one)
    found = []
    for kind, asked in kinds.items():
        mistakes = [one for one in asked if one.is_mistake]
        if mistakes:
            costliest = max(mistakes, key=lambda one: one.judgement.cost)
            found.append(
                Weakness(
                    spot=kind,
                    played=f"{len(mistakes):,} mistakes in {len(asked):,} decisions",
                    best=f"the costliest gave away {costliest.judgement.cost:.1f}",
                    cost=sum(one.judgement.cost for one in mistakes) / units,
                )
            )
    return tuple(sorted(found, key=lambda weakness: -weakness.cost))
