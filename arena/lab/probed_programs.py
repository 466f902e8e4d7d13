"""Plays the made-up matches of an analysis with programs, in any language.

A program is started once, in a private arena, and plays all matches of the analysis one after
another, over the same connection as in a competition. Its CPU time is not charged, but the limits
of wall time, memory and processes apply. An offence ends the analysis.
"""

from __future__ import annotations

from collections.abc import Sequence

from arena.competitions.live_arena import LiveArena
from arena.games.analysis import Analyser, Analysis, ProbedMatch, ProbeMatch, SeatDecision
from arena.games.match import MatchState
from arena.games.rules import EVERYONE, Game
from arena.lab.launched import private_arena
from arena.lab.probe import OnMatch, ProbeFailed, begin, go_on, play_probe
from arena.lab.seat_referee import BotFailed, Script, arrived, referee_of
from arena.referee.bot_session import BotSession
from arena.sandbox.bot_spec import BotSpec
from protocol.messages import Limits, Over
from protocol.strategy import Strategy
from protocol.vocabulary import News

__all__ = ["analyse_programs", "names_of", "script_of"]


async def analyse_programs(
    game: Game,
    analyser: Analyser,
    bots: Sequence[Strategy | BotSpec],
    limits: Limits,
    on_match: OnMatch = lambda probed: None,
) -> Analysis:
    """Run an analysis of `bots[0]` against the others; start the programs, and stop them after it.

    Each program must have a name.

    Raises:
        ProbeFailed: a bot offended.
        UsageError: a command can never work here.
        ArenaError: a program cannot be started on this machine.
    """
    async with private_arena(limits) as arena:
        referee = referee_of(arena)
        there = [
            await _started(arena, number, bot, limits) if isinstance(bot, BotSpec) else bot
            for number, bot in enumerate(bots)
        ]
        step, played = go_on(analyser, None), 0
        while isinstance(step, ProbeMatch):
            played += 1
            bot = there[step.bot]
            if isinstance(bot, BotSession):
                match, decisions = begin(game, step), list[SeatDecision]()
                names, script = names_of(step, bot.public_name), script_of(match, step, decisions)
                failed = await referee.put(bot, f"probe-{played}", match, step.seat, names, script)
                if failed is not None:
                    raise ProbeFailed(step.bot, failed.text, failed.stderr, failed.question)
                probed = ProbedMatch(decisions, match.answers, match.scores)
            else:
                probed = play_probe(game, step, bot)
            on_match(probed)
            step = go_on(analyser, probed)
        return step


async def _started(arena: LiveArena, number: int, bot: BotSpec, limits: Limits) -> BotSession:
    name = f"{bot.name}-{number}" if number else bot.name or ""  # perhaps against itself
    await arena.supervisor.launch_program(bot.program, name)
    player = await arrived(arena, name, limits)
    if isinstance(player, BotFailed):
        raise ProbeFailed(number, player.text, player.stderr)
    return player


def names_of(probe: ProbeMatch, name: str) -> list[str]:
    """Return the players' names of a made-up match by seat, with the bot's own name."""
    names = [f"probe-{number}" for number, _ in enumerate(probe.others, start=1)]
    names.insert(probe.seat, name)
    return names


def script_of(match: MatchState, probe: ProbeMatch, decisions: list[SeatDecision]) -> Script:
    """Make the script of a made-up match, which appends the bot's answers to `decisions`.

    There is no commitment to the cards (J6).
    """
    others: list[Strategy | None] = list(probe.others)
    others.insert(probe.seat, None)
    for strategy in probe.others:
        strategy.reset()
    heard: list[News] = []
    while True:
        for tell in match.take_news():
            if tell.seat in (EVERYONE, probe.seat):
                heard.append(tell.news)
            for seat, other in enumerate(others):
                if other is not None and tell.seat in (EVERYONE, seat):
                    other.hear(tell.news)
        asked = match.pending
        if asked is None:
            ended = match.termination
            assert ended is not None, "it was played to its end"
            return Over("", tuple(heard), match.scores, ended, None)
        question, other = asked.question, others[asked.seat]
        if other is not None:
            match.answer(other.decide(question))
            continue
        given = yield question, tuple(heard)
        heard.clear()
        match.answer(given)
        decisions.append(SeatDecision(question, given))
