"""Puts the made-up matches of an analysis to bots: objects in this process, or programs.

A program is started once, in a private arena, and plays all matches of the analysis one after
another in the arena's own seat. An offence ends the analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from arena.competitions.arena_host import Host
from arena.engine.analysis import Analyser, Analysis, ProbedMatch, ProbeMatch, SeatDecision
from arena.engine.drive import drive
from arena.engine.match import MatchState
from arena.engine.rules import EVERYONE, Game
from arena.engine.shuffle import seed_from_int
from arena.lab.bot_pool import private_arena
from arena.lab.seat_referee import AskedSeat, BotFailed, SeatReferee, arrived, referee_of
from arena.referee.bot_session import BotSession
from arena.sandbox.command import Program
from protocol.errors import NoAnalysis
from protocol.messages import Limits, Over, Termination
from protocol.strategy import Strategy
from protocol.vocabulary import News, Question

__all__ = ["OnMatch", "ProbeFailed", "ProbedProgram", "analyse_here", "analyse_programs", "begin"]

OnMatch: TypeAlias = Callable[[ProbedMatch], None]


class ProbeFailed(NoAnalysis):
    """A bot offended while it was probed.

    Attributes:
        bot: which one, as in `ProbeMatch.bot`.
        stderr: the end of what its process wrote there.
    """

    def __init__(self, bot: int, text: str, stderr: str = "") -> None:
        super().__init__(text)
        self.bot, self.stderr = bot, stderr


class ProbedProgram(msgspec.Struct, frozen=True):
    """A bot that is a process: its name, and its command line for the arena's address and that."""

    name: str
    start: Callable[[str, str], Program]


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
    on_match: OnMatch = lambda probed: None,
) -> Analysis:
    """Run an analysis of `bots[0]`, against the others, as objects in this process.

    Raises `ProbeFailed` if one of them raises or answers what is not legal.
    """
    steps = _Steps(analyser, on_match)
    while steps.probe is not None:
        steps.go_on(_play(game, steps.probe, bots[steps.probe.bot]))
    return steps.analysis


async def analyse_programs(
    game: Game,
    analyser: Analyser,
    bots: Sequence[Strategy | ProbedProgram],
    limits: Limits,
    on_match: OnMatch = lambda probed: None,
) -> Analysis:
    """Run an analysis of `bots[0]`, against the others; programs are started, and then stopped.

    Raises:
        ProbeFailed: one of them offends.
        UsageError: a command can never work here.
        ArenaError: a program cannot be started on this machine.
    """
    async with private_arena(limits) as host:
        referee = referee_of(host)
        there = [
            await _started(host, number, bot, limits) if isinstance(bot, ProbedProgram) else bot
            for number, bot in enumerate(bots)
        ]
        steps = _Steps(analyser, on_match)
        while steps.probe is not None:
            bot = there[steps.probe.bot]
            if isinstance(bot, BotSession):
                steps.go_on(await _put(game, steps, bot, referee))
            else:
                steps.go_on(_play(game, steps.probe, bot))
        return steps.analysis


class _Steps:
    """An analysis in progress; `probe` is the match that it waits for, None at its end."""

    analysis: Analysis

    def __init__(self, analyser: Analyser, on_match: OnMatch) -> None:
        self._analyser, self._on_match = analyser, on_match
        self.played = 0
        self.probe: ProbeMatch | None = None
        self._step(None)

    def go_on(self, probed: ProbedMatch) -> None:
        self._on_match(probed)
        self.played += 1
        self._step(probed)

    def _step(self, probed: ProbedMatch | None) -> None:
        try:
            # A generator that has not begun takes None.
            self.probe = self._analyser.send(probed)  # type: ignore[arg-type]
        except StopIteration as ended:
            self.probe, self.analysis = None, ended.value


def _play(game: Game, probe: ProbeMatch, bot: Strategy) -> ProbedMatch:
    match = begin(game, probe)
    probed = _Probed(bot, match)
    seated: list[Strategy] = list(probe.others)
    seated.insert(probe.seat, probed)
    drive(match, seated)
    ended = match.termination
    assert ended is not None, "it was played to its end"
    if ended.is_offence:
        raise ProbeFailed(probe.bot, ended.text)
    answers = match.answers
    # As the rules took them.
    decisions = [SeatDecision(question, answers[number]) for number, question in probed.asked]
    return ProbedMatch(decisions, answers, match.scores)


class _Probed:
    """The bot, whose questions are noted with the numbers of their answers."""

    def __init__(self, strategy: Strategy, match: MatchState) -> None:
        self._decide, self._answers = strategy.decide, match.answers
        self.hear, self.reset = strategy.hear, strategy.reset
        self.asked: list[tuple[int, Question[Any]]] = []

    def decide(self, question: Question[Any]) -> object:
        self.asked.append((len(self._answers), question))
        return self._decide(question)


async def _started(host: Host, number: int, bot: ProbedProgram, limits: Limits) -> BotSession:
    name = f"{bot.name}-{number}" if number else bot.name  # it may be analysed against itself
    await host.launch_program(bot.start(host.url, name), name)
    player = await arrived(host, name, limits)
    if isinstance(player, BotFailed):
        raise ProbeFailed(number, player.text, player.stderr)
    return player


async def _put(game: Game, steps: _Steps, player: BotSession, referee: SeatReferee) -> ProbedMatch:
    probe = steps.probe
    assert probe is not None, "the analysis waits for it"
    seat = _ProbedSeat(begin(game, probe), probe, player.public_name)
    failed = await referee.put(player, seat, f"probe-{steps.played + 1}")
    if failed is not None:
        raise ProbeFailed(probe.bot, failed.text, failed.stderr)
    return ProbedMatch(seat.decisions, seat.match.answers, seat.match.scores)


class _ProbedSeat(AskedSeat):
    """The seat of a program in a made-up match; strategies answer for the others."""

    def __init__(self, match: MatchState, probe: ProbeMatch, name: str) -> None:
        names = [f"probe-{number}" for number, _ in enumerate(probe.others, start=1)]
        names.insert(probe.seat, name)
        super().__init__(match, probe.seat, names)
        self.decisions: list[SeatDecision] = []
        self._others: list[Strategy | None] = list(probe.others)
        self._others.insert(probe.seat, None)
        for other in probe.others:
            other.reset()

    def proceed(self) -> tuple[Question[Any] | None, tuple[News, ...]]:
        match, heard = self.match, []
        while True:
            for tell in match.take_news():
                if tell.seat in (EVERYONE, self.seat):
                    heard.append(tell.news)
                for seat, other in enumerate(self._others):
                    if other is not None and tell.seat in (EVERYONE, seat):
                        other.hear(tell.news)
            asked = match.pending
            other = None if asked is None else self._others[asked.seat]
            if asked is None or other is None:
                return None if asked is None else asked.question, tuple(heard)
            match.answer(other.decide(asked.question))

    def take(self, number: int, question: Question[Any], given: Any) -> bool:
        self.match.answer(given)
        self.decisions.append(SeatDecision(question, given))
        return True

    def over(self, match: str, news: tuple[News, ...]) -> Over:
        """The end of a match whose cards were made up, and so never committed to (J6)."""
        ended = self.match.termination
        assert isinstance(ended, Termination), "it was played to its end"
        return Over(match, news, self.match.scores, ended, None)
