"""The database, which is the only truth: competitions, matches with their records, eliminations, what instructors did (design §6).

Writing returns at once and is done by one thread (`arena/storage/writer.py`), all rows of a match in one transaction: nobody waits for
a disk, the event loop neither, and what was put in before a `flush` returned survives a power cut. Readers, in this process
or in another, are `arena/storage/reader.py`'s. The store reads no clock: times are Unix seconds and come in as arguments.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec
import sqlalchemy as sa

from arena.engine.match import MatchResult, Result
from arena.formats.schedule import RankingPlace
from arena.formats.spec import Plan
from arena.games import game_named
from arena.records.digest import sealed
from arena.storage.models import Act, CompetitionRow, CompetitionState, MatchRow
from arena.storage.reader import StoreReader
from arena.storage.schema import (
    ACTIONS,
    COMPETITIONS,
    MATCHES,
    SEATS,
    VERDICTS,
    open_database,
    shown,
)
from arena.storage.writer import Row, Writer
from protocol.messages import Ending, Termination, Verdict

__all__ = ["Act", "CompetitionRow", "CompetitionState", "MatchRow", "Store", "new_id"]

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
    "back": MATCHES.update().where(MATCHES.c.id == sa.bindparam("which")).values(counts=False),
}
"""What the store writes; rows before those that refer to them."""


def new_id(game: str) -> str:
    """An id for a new competition: `akq-3f2a1c9e`."""
    return f"{game_named(game).vocabulary.alias}-{secrets.token_hex(4)}"


class Store(StoreReader):
    """The database of an arena.

    Args:
        where: a file for SQLite, or `postgresql+psycopg://…`.
        create: make what is not there yet, and see to it that it can be written; False to look at what an arena has written.
        exclusive: be the arena that runs on it, until it is closed: no other can be at the same time.

    Raises:
        UsageError: it cannot be opened, holds something else than an arena of this version, or another arena runs on it;
            nothing has changed.
    """

    def __init__(self, where: str | Path, *, create: bool = True, exclusive: bool = False) -> None:
        engine, self._lock = open_database(where, create=create, exclusive=exclusive)
        super().__init__(engine, shown(engine.url))
        self._writer = Writer(self._engine, _STATEMENTS, self._where, self._lock)

    @property
    def engine(self) -> sa.Engine:
        """The database itself, for the tables that are not about competitions; to write there use `database.changing`."""
        return self._engine

    @property
    def file(self) -> Path | None:
        """Where it is, if it is a file of ours."""
        url = self._engine.url
        if url.get_backend_name() != "sqlite" or not url.database:
            return None
        return Path(url.database)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing: returns at once, raises StoreFailed if anything before could not be written ---

    def competition_started(self, competition: str, plan: Plan, started_at: float) -> None:
        """Note a new competition, which is running from now on.

        Args:
            competition: an id that no other in this database has, as `new_id` makes one.
            plan: what is to be played.
            started_at: when it was begun.
        """
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
        """Note a match that is over or void, in one transaction with the evidence if it ended by an offence.

        It counts unless it is void. Two that count for one pairing are a failure.

        Args:
            competition: its id.
            pairing: its number in the competition's schedule.
            match: an id that no other match in this database has.
            players: the bots' names by seat.
            result: the result and the record.
            started_at: when the seats were invited.
            finished_at: when the result was known.
            verdict: the evidence, if there is any (J4).
            others: that of those who are out with the offender.

        Returns:
            The match, as a reader will get it but for its number and digest.
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
        )
        ruled = (*(() if verdict is None else (verdict,)), *others)
        evidence = tuple(_ruling(competition, one, finished_at) for one in ruled)
        # A long record takes a while: in the writer's thread, so that the event loop goes on.
        self._writer.put(lambda: (*_match(played, result.record.to_json()), *evidence))
        return played

    def acted(self, act: Act) -> None:
        """Note what somebody did."""
        self._writer.put((_act(act),))

    def state_changed(self, competition: str, state: CompetitionState, act: Act) -> None:
        """Note that a competition is paused or goes on, by whom; one that had ended has not any more."""
        assert state in (CompetitionState.RUNNING, CompetitionState.PAUSED), (
            "others end: competition_finished"
        )
        row = {"which": competition, "state": state.value, "finished_at": None, "ranking": None}
        self._writer.put((("state", row), _act(act)))

    def taken_back(self, competition: str, match: str, act: Act) -> None:
        """Note that a match does not count any more, and by whom."""
        which = {"which": competition}
        self._writer.put((("back", {"which": match}), ("revision", which), _act(act)))

    def competition_finished(
        self,
        competition: str,
        finished_at: float,
        ranking: Sequence[RankingPlace] = (),
        state: CompetitionState = CompetitionState.FINISHED,
        act: Act | None = None,
    ) -> None:
        """Note the end of a competition, of an elimination with its ranking, and who stopped it if somebody did."""
        row = {
            "which": competition,
            "state": state.value,
            "finished_at": float(finished_at),
            "ranking": _json(ranking),
        }
        self._writer.put((("state", row), *(() if act is None else (_act(act),))))

    def flush(self, within_s: float | None = None) -> None:
        """Wait until all that was put in so far is durable; from a coroutine use `flushed`.

        Raises:
            StoreFailed: it could not be written.
            TimeoutError: it takes longer.
        """
        self._writer.barrier().result(within_s)

    async def flushed(self) -> None:
        """Like `flush`, without holding up the event loop."""
        await asyncio.wrap_future(self._writer.barrier())

    def close(self) -> None:
        """Write what is left and close; once more does nothing. It waits: from a coroutine call it after `flushed`.

        Raises:
            StoreFailed: something could not be written.
        """
        try:
            self._writer.close()
        finally:
            if self._lock is not None:
                self._lock.release()
            self._engine.dispose()


def _stored(result: MatchResult) -> Result:
    ended = result.termination
    return Result(
        result.scores,
        result.points,
        Termination(ended.kind, ended.seat, _text(ended.text)),
        result.also_out,
    )


def _match(played: MatchRow, record: bytes) -> list[Row]:
    """The rows of a match, sealed."""
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
        "record": record,
        "digest": sealed(
            match=played.id,
            competition=played.competition,
            pairing=played.pairing,
            players=played.players,
            result=result,
            started_at=played.started_at,
            finished_at=played.finished_at,
            record=record,
        ),
    }
    rows: list[Row] = [("match", row)]
    by_seat = zip(played.players, result.scores, result.points, strict=True)
    for seat, (bot, score, points) in enumerate(by_seat):
        chair = {"seat": seat, "bot": bot, "score": score, "points": points}
        chair["also_out"] = seat in result.also_out
        rows.append(("seat", {"match": played.id, **chair}))
    return rows


def _ruling(competition: str, verdict: Verdict, at: float) -> Row:
    row = {
        "competition": competition,
        "match": verdict.match,
        "bot": verdict.bot,
        "kind": verdict.kind.value,
        "text": _text(verdict.text),
        "at": float(at),
        "evidence": _json(verdict),
    }
    return "verdict", row


def _act(act: Act) -> Row:
    row = msgspec.structs.asdict(act)
    return "act", row | {"at": float(act.at), "text": _text(act.text)}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _text(text: str) -> str:
    """What any database takes: PostgreSQL's texts hold no NUL."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
