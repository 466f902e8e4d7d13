"""Sets up what `arena serve` needs so that bots can be handed in."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from arena.cli._addresses import Endpoint
from arena.competitions.live_arena import LiveArena
from arena.competitions.process_pool import ProcessPool, SeatBot
from arena.games import game_named
from arena.referee.compute_gate import ComputeGate
from arena.sandbox.command import Program
from arena.sandbox.languages import LANGUAGES, Language
from arena.sandbox.safety import fitting_bots, unsafe_because
from arena.sandbox.worker_pool import usable_cores
from arena.storage.store import Store
from arena.submissions.service import SubmissionService
from arena.submissions.settings import SubmissionSettings
from protocol.errors import UsageError
from protocol.messages import Limits
from protocol.submitting import StarterFiles

__all__ = ["cache_folder", "check_safety", "play_submissions", "submission_service"]

_STARTER_NAME = "bot"
_OPTION = "--submissions-without-isolation"


def check_safety(limits: Limits, endpoint: Endpoint, *, without_isolation: bool) -> str:
    """What every student could read, where programs are not isolated; else empty.

    Raises `UsageError` if submissions are not safe on this machine, and that is not wanted or other
    machines can hand in.
    """
    if without_isolation and (not endpoint.is_near or endpoint.proxies):
        raise UsageError(f"expected {_OPTION} only where the arena listens on this machine alone")
    reasons = unsafe_because(limits)
    if not reasons:
        return ""
    if not without_isolation:
        why = "; ".join(reasons)
        raise UsageError(
            f"submissions are not safe on this machine: {why}; `arena doctor` says more, and "
            f"{_OPTION} takes them all the same from this machine"
        )
    return (
        "submitted programs are not isolated here: each can read what the arena can, the database "
        f"with its results and other students' programs too ({'; '.join(reasons)})"
    )


def cache_folder(store: Store) -> Path:
    """Where built programs and uploads lie: beside the database's file, else with the user's."""
    if store.file is not None:
        return store.file.with_name(f"{store.file.name}-submissions").absolute()
    url = store.engine.url.render_as_string(hide_password=True)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home, "card-arena", hashlib.sha256(url.encode()).hexdigest()[:16])


def submission_service(
    store: Store,
    settings: SubmissionSettings,
    limits: Limits,
    games: Iterable[str],
    hidden: Sequence[Path],
    unsafe: str,
) -> SubmissionService:
    """The submissions of an arena on this database."""
    return SubmissionService(
        store.engine,
        settings,
        limits,
        cache_folder(store),
        hidden=hidden,
        check=(sys.executable, "-P", "-m", "arena.cli._submission_check"),
        games=tuple(games),
        starter=_starter,
        unsafe=unsafe,
    )


def play_submissions(arena: LiveArena, service: SubmissionService) -> None:
    """Let the competitions of an arena play submitted bots."""
    settings = service.settings
    cores = settings.cores or max(1, usable_cores() - 1)
    # One may be built or checked beside matches. A match needs two, whatever else is on.
    most = max(2, fitting_bots(arena.limits, 2 * settings.build_mib))

    async def program(bot: SeatBot) -> Program:
        assert bot.submission is not None, "others are connected here"
        return await service.program(bot.submission)

    pool = ProcessPool(arena.supervisor, ComputeGate(cores), program, most, service.note_stderr)
    arena.take_submissions(service, pool, cores)
    service.on_rebuild = pool.retire
    service.in_use = lambda: {
        number for row in arena.unfinished() for number in row.plan.versions.values()
    }


def _starter(game: str, language: str) -> StarterFiles:
    # Imported late: it loads Jinja, which an arena does not need to start.
    from arena.authoring.starter import starter

    if language not in set(Language):
        known = ", ".join(Language)
        raise UsageError(f"expected one of {known}, got {language!r}")
    made = starter(game_named(game), Language(language), _STARTER_NAME)
    return StarterFiles(dict(made.files), LANGUAGES[Language(language)].edit)
