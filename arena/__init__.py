"""Card Arena: a self-hosted arena where bots play card games."""

from __future__ import annotations

from arena.engine.match import MatchResult, Record
from arena.games.replay import replay
from arena.lab.in_process import play
from arena.lab.odds import odds
from protocol.version import __version__

__all__ = ["MatchResult", "Record", "__version__", "odds", "play", "replay"]
