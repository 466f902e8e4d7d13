"""Puts the made-up matches of an analysis to bots: objects in this process, or programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from arena.engine.analysis import Analyser, Analysis, ProbedMatch, ProbeMatch, SeatDecision
from arena.engine.drive import drive
from arena.engine.match import MatchState
from arena.engine.rules import Game
from arena.engine.shuffle import seed_from_int
from protocol.strategy import Strategy
from protocol.vocabulary import News, Question

__all__ = ["analyse_here", "begin"]


class _Probed:
    """The bot, whose decisions are noted."""

    def __init__(self, strategy: Strategy, decisions: list[SeatDecision]) -> None:
        self._strategy, self._decisions = strategy, decisions

    def decide(self, question: Question[Any]) -> object:
        answer = self._strategy.decide(question)
        self._decisions.append(SeatDecision(question, answer))
        return answer

    def reset(self) -> None:
        self._strategy.reset()

    def hear(self, news: News) -> None:
        self._strategy.hear(news)


def begin(game: Game, probe: ProbeMatch) -> MatchState:
    """The match of a probe, at its first question."""
    if probe.rules is not None:
        game = msgspec.structs.replace(game, rules=probe.rules)
    if probe.decks is None:
        return MatchState(game, probe.settings, seed=seed_from_int(probe.seed))
    return MatchState(game, probe.settings, decks=probe.decks)


def analyse_here(
    game: Game,
    analyser: Analyser,
    bots: Sequence[Strategy],
    on_match: Callable[[ProbedMatch], None] = lambda probed: None,
) -> Analysis:
    """Run an analysis of `bots[0]`, against the others, as objects in this process."""
    probed: ProbedMatch | None = None
    while True:
        try:
            probe = next(analyser) if probed is None else analyser.send(probed)
        except StopIteration as ended:
            analysis: Analysis = ended.value
            return analysis
        probed = _play(game, probe, bots[probe.bot])
        on_match(probed)


def _play(game: Game, probe: ProbeMatch, bot: Strategy) -> ProbedMatch:
    match = begin(game, probe)
    decisions: list[SeatDecision] = []
    seated: list[Strategy] = list(probe.others)
    seated.insert(probe.seat, _Probed(bot, decisions))
    drive(match, seated)
    ended = match.termination
    assert ended is not None, "it was played to its end"
    offence = ended.text if ended.is_offence else ""
    return ProbedMatch(decisions, tuple(match.answers), match.scores, offence)
