"""Plays the made-up matches of an analysis with bots that are objects in this process.

An offence ends the analysis. `arena/lab/probed_programs.py` does the same with programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from arena.games.analysis import Analyser, Analysis, ProbedMatch, ProbeMatch, SeatDecision
from arena.games.match import MatchState, drive
from arena.games.rules import Game
from arena.games.shuffle import seed_from_int
from protocol.errors import NoAnalysis
from protocol.strategy import Strategy
from protocol.vocabulary import News, Question

__all__ = ["OnMatch", "ProbeFailed", "analyse_here", "begin", "go_on", "play_probe"]

OnMatch: TypeAlias = Callable[[ProbedMatch], None]


class ProbeFailed(NoAnalysis):
    """A bot offended while it was probed.

    Attributes:
        bot: its number, as in `ProbeMatch.bot`.
        stderr: the end of its process's standard error.
        question: the open question; None between two questions.
    """

    def __init__(
        self, bot: int, text: str, stderr: str = "", question: Question[Any] | None = None
    ) -> None:
        super().__init__(text)
        self.bot, self.stderr, self.question = bot, stderr, question

    def told(self, game: Game, name: str) -> str:
        """Say why the analysis of the bot called `name` ended, and at which decision."""
        text = f"{name} failed: {self}"
        if self.question is None:
            return text
        asked = game.vocabulary.asked_words(self.question).asked(name, self.question)
        return f"{text}; the decision: {self.question.kind}, {asked}"


def begin(game: Game, probe: ProbeMatch) -> MatchState:
    """Begin the match of a probe, and return it at its first question."""
    if probe.rules is not None:
        game = msgspec.structs.replace(game, rules=probe.rules)
    if probe.decks is None:
        return MatchState(game, probe.settings, seed=seed_from_int(probe.seed))
    return MatchState(game, probe.settings, decks=probe.decks)


def analyse_here(
    game: Game,
    analyser: Analyser,
    bots: Sequence[Strategy],
    on_match: OnMatch = lambda probed: None,
) -> Analysis:
    """Run an analysis of `bots[0]` against the others, as objects in this process.

    Raises `ProbeFailed` if a bot raises an exception or gives an illegal answer.
    """
    step = go_on(analyser, None)
    while isinstance(step, ProbeMatch):
        played = play_probe(game, step, bots[step.bot])
        on_match(played)
        step = go_on(analyser, played)
    return step


def go_on(analyser: Analyser, played: ProbedMatch | None) -> ProbeMatch | Analysis:
    """Resume an analysis with a played match (None at first); return the next match or the end."""
    try:
        return analyser.send(played)  # type: ignore[arg-type]  # a generator takes None first
    except StopIteration as ended:
        result: Analysis = ended.value
        return result


def play_probe(game: Game, probe: ProbeMatch, bot: Strategy) -> ProbedMatch:
    """Play one match of an analysis; raises `ProbeFailed` if the bot offends."""
    match = begin(game, probe)
    probed = _Probed(bot, match)
    seated: list[Strategy] = list(probe.others)
    seated.insert(probe.seat, probed)
    drive(match, seated)
    ended = match.termination
    assert ended is not None, "it was played to its end"
    if ended.is_offence:
        assert ended.seat == probe.seat, f"of a strategy of the analysis: {ended.text}"
        text = ended.text.removeprefix(f"seat {probe.seat + 1} ")
        raise ProbeFailed(probe.bot, text, question=probed.open)
    answers = match.answers
    # The answers as the rules took them, not as the bot gave them.
    decisions = [SeatDecision(question, answers[number]) for number, question in probed.asked]
    return ProbedMatch(decisions, answers, match.scores)


class _Probed:
    """Wraps the bot, and records each question with the index of its answer."""

    def __init__(self, strategy: Strategy, match: MatchState) -> None:
        self._strategy, self._answers = strategy, match.answers
        self.asked: list[tuple[int, Question[Any]]] = []

    @property
    def open(self) -> Question[Any] | None:
        """The question that has no answer yet, or None."""
        if not self.asked or self.asked[-1][0] < len(self._answers):
            return None
        return self.asked[-1][1]

    def decide(self, question: Question[Any]) -> object:
        self.asked.append((len(self._answers), question))
        return self._strategy.decide(question)

    def hear(self, news: News) -> None:
        self._strategy.hear(news)

    def reset(self) -> None:
        self._strategy.reset()
