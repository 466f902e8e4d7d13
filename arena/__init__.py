"""Card Arena: a self-hosted arena where bots play card games.

Its public names are imported when they are first used: a script that plays a match needs no
database.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from protocol.version import __version__

if TYPE_CHECKING:
    from arena.games.match import MatchResult, Record
    from arena.games.replay import replay
    from arena.lab.analyse import analyse
    from arena.lab.environment import Environment, aec_env
    from arena.lab.experiments import compare, cross
    from arena.lab.in_process import play
    from arena.lab.odds import odds
    from arena.records.decisions import decisions
    from arena.storage.store import Store

__all__ = [
    "Environment",
    "MatchResult",
    "Record",
    "Store",
    "__version__",
    "aec_env",
    "analyse",
    "compare",
    "cross",
    "decisions",
    "odds",
    "play",
    "replay",
]

_MODULES = {
    "Environment": "arena.lab.environment",
    "MatchResult": "arena.games.match",
    "Record": "arena.games.match",
    "Store": "arena.storage.store",
    "aec_env": "arena.lab.environment",
    "analyse": "arena.lab.analyse",
    "compare": "arena.lab.experiments",
    "cross": "arena.lab.experiments",
    "decisions": "arena.records.decisions",
    "odds": "arena.lab.odds",
    "play": "arena.lab.in_process",
    "replay": "arena.games.replay",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'arena' has no attribute {name!r}")
    try:
        module = import_module(_MODULES[name])
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("arena."):
            raise
        line = f"arena.{name} needs {error.name}, which is not installed here"
        raise ModuleNotFoundError(line, name=error.name) from None
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
