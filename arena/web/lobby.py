"""Makes the lobby's document: what is going on now, from the arena's memory, without any I/O.

It is made at most once a second for all viewers, and stays small however much is played: lists are
cut, and say by how much. Times are Unix seconds. Everything in it is public (J8).
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, islice
from typing import TYPE_CHECKING

import msgspec

from arena.competitions.attendance import Upcoming
from arena.formats.schedule import Pairing
from arena.formats.spec import Form
from arena.games.catalogue import GAMES, game_title
from arena.games.match import Result
from arena.referee.bot_session import BotSession, LiveMatch
from protocol.strategy import house_bots
from protocol.version import __version__

if TYPE_CHECKING:
    from arena.competitions.competition import Competition
    from arena.competitions.ledger import Ledger
    from arena.competitions.live_arena import LiveArena
    from arena.web.spectators import Spectators

__all__ = [
    "LatestMatches",
    "Lobby",
    "LobbyArena",
    "LobbyBot",
    "LobbyCompetition",
    "LobbyGame",
    "LobbyMatch",
    "LobbyPairing",
    "LobbyResult",
    "lobby",
]

_BOTS, _MATCHES, _QUEUE, _LATEST = 500, 100, 20, 20  # the most entries of each list
_YOUNG_S = 2.0  # younger matches are too young for a pace

_SINCE = time.time()  # a browser that has seen another value shows a page from before a restart


class LobbyGame(msgspec.Struct, frozen=True):
    """A game, with the house bots that play it."""

    name: str
    title: str
    seats: int
    house: tuple[str, ...]


class LobbyArena(msgspec.Struct, frozen=True, kw_only=True):
    """The arena itself; `page_since` changes when it is restarted.

    `submissions` says whether programs can be handed in at `/submit`, `submissions_close` until
    when, and `hosts` whether bots may run on other machines. `unwritten` has a line while results
    cannot be written to the disk, `filling` has one if the disk will be full within a day.
    """

    version: str
    practice: bool
    page_since: float
    games: tuple[LobbyGame, ...]
    requires_token: bool
    submissions: bool
    submissions_close: float | None = None
    hosts: bool
    unwritten: str = ""
    filling: str = ""


class LobbyCompetition(msgspec.Struct, frozen=True, kw_only=True):
    """A running competition; `waits_for` are absent bots, or bots whose match needs the instructor.

    `take` says who plays: `connected` bots, `submitted` bots, or `either`. `reopened` says whether
    the competition was over before: nobody is ruled absent from it.
    """

    id: str
    run: str
    game: str
    title: str
    form: str
    state: str
    settled: int
    scheduled: int | None
    left_s: float | None
    waits_for: tuple[str, ...]
    bots: int
    started_at: float
    take: str
    reopened: bool = False


class LobbyBot(msgspec.Struct, frozen=True, kw_only=True):
    """A bot that is connected or may reconnect, with its number of matches and the limit.

    In the state `submitted` it is not connected, but its submission plays in a competition.
    """

    name: str
    games: tuple[str, ...]
    tables: int
    playing: int
    state: str
    rtt_ms: float | None
    launched: bool


class LobbyMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match that is being played."""

    match: str
    game: str
    competition: str | None
    players: tuple[str, ...]
    scores: tuple[int, ...]
    decisions: int
    since_s: float
    viewers: int


class LobbyPairing(msgspec.Struct, frozen=True, kw_only=True):
    """A pairing in the queue, and the bots that it waits for."""

    competition: str
    players: tuple[str, ...]
    waits_for: tuple[str, ...]


class LobbyResult(msgspec.Struct, frozen=True, kw_only=True):
    """A finished match; `seat` is the seat whose offence ended it, if any."""

    id: str
    competition: str
    game: str
    players: tuple[str, ...]
    scores: tuple[int, ...]
    termination: str
    seat: int | None
    finished_at: float


class Lobby(msgspec.Struct, frozen=True, kw_only=True):
    """`/api/lobby.json`; `…_more` is the number of entries that a list leaves out."""

    arena: LobbyArena
    competitions: tuple[LobbyCompetition, ...]
    bots: tuple[LobbyBot, ...]
    bots_more: int
    matches: tuple[LobbyMatch, ...]
    matches_more: int
    queue: tuple[LobbyPairing, ...]
    queue_more: int
    runs: tuple[Upcoming, ...]
    latest: tuple[LobbyResult, ...]


class LatestMatches(deque[LobbyResult]):
    """The latest finished matches of all competitions, the newest first."""

    def __init__(self) -> None:
        super().__init__(maxlen=_LATEST)

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        self.appendleft(
            LobbyResult(
                id=match,
                competition=ledger.id,
                game=ledger.plan.game,
                players=pairing.players,
                scores=result.scores,
                termination=result.termination.kind.value,
                seat=result.termination.seat,
                finished_at=time.time(),
            )
        )


def lobby(
    arena: LiveArena,
    spectators: Spectators,
    latest: Iterable[LobbyResult] = (),
    upcoming: Iterable[Upcoming] = (),
) -> bytes:
    """Make the current document; `latest` begins with the newest result."""
    competitions = arena.competitions
    players = arena.gateway.players
    guests = arena.here.non_competing
    submitted = _submitted(competitions, players)
    bots = (_bot(bot) for name, bot in players.items() if name not in guests)
    count = len(players) - sum(name in players for name in guests) + len(submitted)
    now = asyncio.get_running_loop().time()
    tables = tuple(arena.referee.tables)
    matches = _slowest(tables, now)
    competition_of = {
        table.id: competition.id
        for competition in competitions
        for table in competition.arbiter.tables
    }
    queue = [
        _queued(competition, pairing, players)
        for competition in competitions
        for pairing in competition.stage.queue(_QUEUE)
    ]
    service = arena.submissions
    waiting = sum(competition.stage.waiting for competition in competitions)
    document = Lobby(
        arena=LobbyArena(
            version=__version__,
            practice=arena.referee.practice,
            page_since=_SINCE,
            games=_games(),
            requires_token=arena.gateway.admission.requires_token,
            submissions=service is not None,
            submissions_close=None if service is None else service.settings.closes,
            hosts=arena.host_directory is not None,
            unwritten=arena.storage.state,
            filling=arena.storage.filling,
        ),
        competitions=tuple(map(_competition, competitions)),
        bots=tuple(islice(chain(bots, submitted), _BOTS)),
        bots_more=max(0, count - _BOTS),
        matches=tuple(
            _match(table, competition_of.get(table.id), now, spectators) for table in matches
        ),
        matches_more=len(tables) - len(matches),
        queue=tuple(queue[:_QUEUE]),
        queue_more=waiting - len(queue[:_QUEUE]),
        runs=tuple(upcoming),
        latest=tuple(latest),
    )
    return msgspec.json.encode(document)


@functools.cache  # finding the installed house bots takes a while
def _games() -> tuple[LobbyGame, ...]:
    return tuple(
        LobbyGame(name, game.vocabulary.title, game.seats, tuple(house_bots(name)))
        for name, game in GAMES.items()
    )


def _competition(competition: Competition) -> LobbyCompetition:
    progress, plan = competition.progress, competition.plan
    bots = len(plan.players)
    if plan.form is Form.LADDER:  # bots may join at any time
        bots = max(bots, len(competition.ledger.ladder()))
    return LobbyCompetition(
        id=competition.id,
        run=plan.run,
        game=plan.game,
        title=game_title(plan.game),
        form=plan.form.value,
        state=progress.state,
        settled=progress.settled,
        scheduled=None if plan.form is Form.LADDER or plan.settle else progress.scheduled,
        left_s=progress.left_s,
        waits_for=progress.waits_for,
        bots=bots,
        started_at=competition.started_at,
        take=plan.take.value,
        reopened=progress.reopened,
    )


def _bot(player: BotSession) -> LobbyBot:
    connection = player.connection
    state = "away" if connection is None else "here"
    return LobbyBot(
        name=player.name,
        games=tuple(game for game in GAMES if game in player.games),
        tables=player.tables,
        playing=len(player.chairs),
        state="leaving" if player.leaving else state,
        rtt_ms=None if connection is None else connection.min_rtt_ms,
        launched=player.process is not None,
    )


def _submitted(
    competitions: Sequence[Competition], players: Mapping[str, BotSession]
) -> list[LobbyBot]:
    """List the bots that are not connected but take part by a submission."""
    games: dict[str, dict[str, None]] = {}
    for competition in competitions:
        for name in competition.submitted:
            if name not in players:
                games.setdefault(name, {})[competition.plan.game] = None
    playing = Counter(
        name
        for competition in competitions
        for table in competition.arbiter.tables
        for name in table.names
        if name in games
    )
    return [
        LobbyBot(
            name=name,
            games=tuple(games[name]),
            tables=playing[name],
            playing=playing[name],
            state="submitted",
            rtt_ms=None,
            launched=False,
        )
        for name in games
    ]


def _slowest(tables: Sequence[LiveMatch], now: float) -> list[LiveMatch]:
    """Choose the matches best to watch, the newest last: fast ones are over too soon."""

    def pace(table: LiveMatch) -> float:
        return table.decisions / max(now - table.opened_at, _YOUNG_S)

    return sorted(nsmallest(_MATCHES, tables, key=pace), key=lambda table: table.opened_at)


def _match(
    table: LiveMatch, competition: str | None, now: float, spectators: Spectators
) -> LobbyMatch:
    return LobbyMatch(
        match=table.id,
        game=table.game.name,
        competition=competition,
        players=table.names,
        scores=(0,) * len(table.names) if table.match is None else table.match.scores,
        decisions=table.decisions,
        since_s=round(now - table.opened_at, 1),
        viewers=spectators.viewers(table.id),
    )


def _queued(
    competition: Competition, pairing: Pairing, players: Mapping[str, BotSession]
) -> LobbyPairing:
    # A bot may meet itself, so count it once; submissions are never waited for.
    names = dict.fromkeys(name for name in pairing.players if name not in competition.submitted)
    waits = (name for name in names if name not in players or not players[name].is_free)
    return LobbyPairing(competition=competition.id, players=pairing.players, waits_for=tuple(waits))
