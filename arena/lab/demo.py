"""A small class competition in every game, over WebSocket, with three bots that misbehave.

Only the choice of bots belongs to the demo; the arena, competition and store are the usual ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from arena.competitions.competition import Competition
from arena.competitions.live_arena import LiveArena
from arena.formats.spec import WITH_MATCHES, form_of, plan_of
from arena.games.catalogue import GAMES, competition_settings, game_named
from arena.storage.models import CompetitionReport
from arena.storage.store import Store
from protocol.codec import Encoding
from protocol.errors import ArenaError
from protocol.messages import Limits
from protocol.strategy import house_bots

__all__ = ["DemoGame", "demo", "field"]

LIMITS = Limits(decision_ms=1_000, bank_ms=2_000, hard_ms=2_500, wall_ms=2_500, grace_ms=5_000)
"""Short enough that a silent bot hardly delays the demo, long enough for a busy laptop."""

_CONNECT_S = 60.0  # for thirty interpreters to start on two busy cores
_ROGUES = ("rogue-illegal", "rogue-crash", "rogue-stall")


class DemoGame(msgspec.Struct, frozen=True, kw_only=True):
    """One game of the demo; every third bot plays at `few` tables at once, the others at `many`."""

    game: str
    bots: tuple[str, ...]
    settings: Mapping[str, object]
    matches: int = 1
    with_itself: bool = False
    few: int = 1
    many: int = 16


def field() -> tuple[DemoGame, ...]:
    """List the bots of each game that has house bots: all of them, and in some games a rogue.

    There are more bots than seats, so that an elimination has more than one table. If the house
    bots are too few, they enter several times. Each rogue is in one game with several seats.
    """
    rogues = iter(_ROGUES)
    contests = []
    for game in GAMES.values():
        house = tuple(house_bots(game.name))
        if not house:
            continue
        copies = -(-(game.seats + 1) // len(house)) if game.seats > 1 else 1
        rogue = next(rogues, None) if game.seats > 1 else None
        contests.append(
            DemoGame(
                game=game.name,
                bots=house * copies + (() if rogue is None else (rogue,)),
                settings=game.demo.settings,
                matches=game.demo.matches if form_of(game) in WITH_MATCHES else 1,
                with_itself=game.meets_itself,
                few=2 if game.meets_itself else 1,  # to sit on both sides of its table
            )
        )
    return tuple(contests)


async def demo(
    store: Store,
    contests: Sequence[DemoGame],
    on_start: Callable[[str, Competition], None] = lambda title, competition: None,
) -> list[CompetitionReport]:
    """Start the bots, play the competitions one after another, and stop the bots.

    `on_start` is called with each game's title and competition when it starts. Raises `ArenaError`
    if bots do not connect or a competition cannot be finished.
    """
    async with LiveArena(store, limits=LIMITS) as arena:
        for contest in contests:
            await _launch(arena, contest)
        reports = []
        for contest in contests:
            names = tuple(name for name, _ in _entries(contest))
            await _connected(arena, names)
            game = game_named(contest.game)
            competition = arena.compete(
                plan_of(
                    game,
                    competition_settings(game, contest.settings),
                    names,
                    matches=contest.matches,
                    with_itself=contest.with_itself,
                    limits=LIMITS,
                )
            )
            on_start(game.vocabulary.title, competition)
            reports.append(await arena.play(competition))
        await asyncio.to_thread(store.flush)
        return reports


def _entries(contest: DemoGame) -> Iterator[tuple[str, str]]:
    """Yield the name of each of a contest's bots, with the house bot it runs."""
    short = game_named(contest.game).vocabulary.alias
    for index, bot in enumerate(contest.bots):
        number = contest.bots[: index + 1].count(bot)
        again = f"-{number}" if contest.bots.count(bot) > 1 else ""
        yield f"{short}-{bot}{again}", bot


async def _launch(arena: LiveArena, contest: DemoGame) -> None:
    """Start the bots: every second one speaks msgpack, every third one plays at few tables."""
    for index, (name, bot) in enumerate(_entries(contest)):
        await arena.supervisor.launch(
            (contest.game, bot),
            name,
            tables=contest.few if index % 3 == 0 else contest.many,
            encoding=Encoding.MSGPACK if index % 2 else Encoding.JSON,
        )


async def _connected(arena: LiveArena, names: Sequence[str]) -> None:
    missing = sorted(set(names) - await arena.wait_for_bots(names, _CONNECT_S))
    for name in names:
        if name in arena.supervisor.ended:
            raise ArenaError(f"{name} has ended: {arena.supervisor.ended[name]}")
    if missing:
        raise ArenaError(f"expected {', '.join(missing)} to connect within {_CONNECT_S:.0f} s")
