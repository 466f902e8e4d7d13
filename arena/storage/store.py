"""The arena's database, the only place that keeps results: what was played and done.

Methods that write return at once. One thread does the writing (`arena/storage/writer.py`), with all
rows of a match in one transaction. When `flush` returns, all changes before it survive a power cut.
`arena/storage/reader.py` reads. The store reads no clock: times are Unix seconds and come in as
arguments.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import sqlalchemy as sa

from arena.formats.schedule import RankingPlace
from arena.formats.spec import Plan
from arena.games.catalogue import game_named
from arena.games.match import MatchResult, Result
from arena.records.document import sealed, stored_text
from arena.storage.models import (
    Act,
    CompetitionRow,
    CompetitionState,
    MatchRow,
    MatchSums,
    seated_versions,
)
from arena.storage.reader import StoreReader, document_of
from arena.storage.schema import (
    ACTIONS,
    COMPETITIONS,
    MATCHES,
    META,
    SEATS,
    VERDICTS,
    compressed,
    open_database,
    shown,
)
from arena.storage.writer import Backlog, Row, Writer, writing
from protocol.messages import Ending, Termination, Verdict

__all__ = ["Act", "CompetitionRow", "CompetitionState", "MatchRow", "Store", "new_id"]

_ARENA = "arena"  # a key of the table `meta`

_STATEMENTS: dict[str, sa.Insert | sa.Update] = {
    "competition": COMPETITIONS.insert(),
    "match": MATCHES.insert(),
    "seat": SEATS.insert(),
    "verdict": VERDICTS.insert(),
    "act": ACTIONS.insert(),
    "state": COMPETITIONS.update().where(COMPETITIONS.c.id == sa.bindparam("which")),
    "revision": COMPETITIONS.update()
    .where(COMPETITIONS.c.id == sa.bindparam("which"))
    .values(revision=COMPETITIONS.c.revision + 1),
    "sums": MATCHES.update()
    .where(MATCHES.c.id == sa.bindparam("which"))
    .values(sums=sa.bindparam("made")),
    "sums revision": META.update()
    .where(META.c.key == "sums")
    .values(value=sa.bindparam("revision")),
    "counting": MATCHES.update()
    .where(MATCHES.c.id == sa.bindparam("which"))
    .values(counts=sa.bindparam("now")),
}
"""What the store writes, in this order: a row comes before those that refer to it."""


def new_id(game: str) -> str:
    """Make an id for a new competition from its game's alias: `alias-3f2a1c9e`."""
    return f"{game_named(game).vocabulary.alias}-{secrets.token_hex(4)}"


class Store(StoreReader):
    """An arena's database; arguments and errors are those of `open_database`.

    `create` is False for reading alone. With `exclusive`, the store holds the lock until `close`.
    """

    def __init__(self, where: str | Path, *, create: bool = True, exclusive: bool = False) -> None:
        engine, self._lock = open_database(where, create=create, exclusive=exclusive)
        super().__init__(engine, shown(engine.url))
        self._writer = Writer(self.engine, _STATEMENTS, self._where, self._lock)

    @property
    def backlog(self) -> Backlog:
        """The changes that have not reached the disk yet."""
        return self._writer.backlog

    @property
    def file(self) -> Path | None:
        """The file of an SQLite database; None for a server."""
        url = self.engine.url
        if url.get_backend_name() != "sqlite" or not url.database:
            return None
        return Path(url.database)

    def arena_id(self) -> str:
        """Return the arena's name on a bus, which the first call makes and which never changes.

        This blocks. Raises StoreFailed if the database cannot be written.
        """
        query = sa.select(META.c.value).where(META.c.key == _ARENA)
        with writing(self.engine) as connection:
            name: str | None = connection.execute(query).scalar()
            if name is None:
                name = secrets.token_hex(8)
                connection.execute(META.insert(), {"key": _ARENA, "value": name})
            return name

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing: returns at once, raises StoreFailed if an earlier change could not be written ---

    def competition_started(self, competition: str, plan: Plan, started_at: float) -> None:
        """Write a new, running competition; `new_id` made its id."""
        row = {
            "id": competition,
            "plan": _json(plan),
            "game": plan.game,
            "form": plan.form.value,
            "state": CompetitionState.RUNNING.value,
            "revision": 0,
            "started_at": float(started_at),
        }
        self._writer.put((("competition", row),))

    def match_finished(
        self,
        competition: str,
        pairing: int,
        match: str,
        players: Sequence[str],
        result: MatchResult,
        started_at: float,
        finished_at: float,
        verdict: Verdict | None = None,
        others: Sequence[Verdict] = (),
    ) -> MatchRow:
        """Write a match that is over or void, in one transaction with its verdicts.

        It counts unless it is void; two counting matches for one pairing are a failure. See
        `MatchRow` for the arguments. `verdict` is on the offender (J4), `others` on the bots that
        are out with it. Returns the match as readers get it, except for number and digest.
        """
        played = MatchRow(
            number=0,
            id=match,
            competition=competition,
            pairing=pairing,
            counts=result.termination.kind is not Ending.VOID,
            game=result.record.game,
            players=tuple(players),
            result=_stored(result),
            started_at=float(started_at),
            finished_at=float(finished_at),
            digest="",
            sums=MatchSums(result.units),
            versions=seated_versions(result.record.versions or ()),
        )
        verdicts = others if verdict is None else (verdict, *others)
        evidence = tuple(_ruling(competition, verdict, finished_at) for verdict in verdicts)
        # Encoding a long record takes a while, so the writer's thread does it, not the event loop.
        self._writer.put(
            lambda: (*_match(played, result.record.to_json()), *evidence), results=played.counts
        )
        return played

    def acted(self, act: Act) -> None:
        self._writer.put((_act(act),))

    def state_changed(self, competition: str, state: CompetitionState, act: Act) -> None:
        """Write that a competition was paused or continued."""
        assert state in (CompetitionState.RUNNING, CompetitionState.PAUSED), (
            "others end: competition_finished"
        )
        self._writer.put((_open(competition, state), _act(act)))

    def taken_back(
        self, competition: str, match: str, act: Act, reopened: Act | None = None
    ) -> None:
        """Write that a match no longer counts. With `reopened`, its finished competition runs
        again.
        """
        rows = *_counting(competition, match, now=False), _act(act)
        if reopened is not None:
            rows += _open(competition, CompetitionState.RUNNING), _act(reopened)
        self._writer.put(rows)

    def restored(self, competition: str, match: str, act: Act) -> None:
        """Write that a match counts again after it was taken back."""
        self._writer.put((*_counting(competition, match, now=True), _act(act)))

    def sums_made(self, made: Iterable[tuple[str, MatchSums]]) -> None:
        """Write sums of finished matches, each with its match id."""
        rows: list[Row] = [("sums", {"which": match, "made": _json(sums)}) for match, sums in made]
        self._writer.put((*rows, ("sums revision", {"revision": secrets.token_hex(8)})))

    def competition_finished(
        self,
        competition: str,
        finished_at: float,
        ranking: Sequence[RankingPlace] = (),
        state: CompetitionState = CompetitionState.FINISHED,
        act: Act | None = None,
    ) -> None:
        """Write the end of a competition; `act` is by the instructor who stopped it, if any."""
        row = {
            "which": competition,
            "state": state.value,
            "finished_at": float(finished_at),
            "ranking": _json(ranking),
        }
        self._writer.put((("state", row), *(() if act is None else (_act(act),))))

    def flush(self, within_s: float | None = None) -> None:
        """Wait until all changes so far are durable; from a coroutine use `flushed`.

        Raises StoreFailed if a change could not be written, TimeoutError if it takes longer.
        """
        self._writer.barrier().result(within_s)

    async def flushed(self) -> None:
        await asyncio.wrap_future(self._writer.barrier())

    def close(self) -> None:
        """Write the remaining changes, within seconds; a second call does nothing.

        This blocks; from a coroutine call it after `flushed`. Raises StoreFailed, with the number
        of lost matches, if it cannot write them.
        """
        try:
            self._writer.close()
        finally:
            if self._lock is not None:
                self._lock.release()
            self.engine.dispose()


def _stored(result: MatchResult) -> Result:
    ended = result.termination
    ended = Termination(ended.kind, ended.seat, stored_text(ended.text))
    return Result(result.scores, result.points, ended, result.also_out)


def _match(played: MatchRow, record: bytes) -> list[Row]:
    result = played.result
    ended = result.termination
    row = {
        "id": played.id,
        "competition": played.competition,
        "pairing": played.pairing,
        "counts": played.counts,
        "game": played.game,
        "kind": ended.kind.value,
        "seat": ended.seat,
        "text": ended.text,
        "started_at": played.started_at,
        "finished_at": played.finished_at,
        "record": compressed(record),
        "digest": sealed(document_of(played, record)),
        "sums": _json(played.sums),
    }
    rows: list[Row] = [("match", row)]
    versions = played.versions or (None,) * len(played.players)
    by_seat = zip(played.players, result.scores, result.points, versions, strict=True)
    for seat, (bot, score, points, version) in enumerate(by_seat):
        row = {"match": played.id, "seat": seat, "bot": bot, "score": score, "points": points}
        rows.append(("seat", {**row, "also_out": seat in result.also_out, "version": version}))
    return rows


def _ruling(competition: str, verdict: Verdict, at: float) -> Row:
    row = {
        "competition": competition,
        "match": verdict.match,
        "bot": verdict.bot,
        "kind": verdict.kind.value,
        "text": stored_text(verdict.text),
        "at": float(at),
        "evidence": _json(verdict),
    }
    return "verdict", row


def _open(competition: str, state: CompetitionState) -> Row:
    return "state", {
        "which": competition,
        "state": state.value,
        "finished_at": None,
        "ranking": None,
    }


def _counting(competition: str, match: str, *, now: bool) -> tuple[Row, ...]:
    return ("counting", {"which": match, "now": now}), ("revision", {"which": competition})


def _act(act: Act) -> Row:
    row = msgspec.structs.asdict(act)
    return "act", row | {"at": float(act.at), "text": stored_text(act.text)}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
