"""The `arena` command that says what a running arena imports: `-m tests.support.late_imports serve`.

Each is a line on stderr: where no file descriptor is left, that import would fail.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from typing import Any
from unittest.mock import patch

from arena.cli import main
from arena.competitions.scheduler import Scheduler

__all__ = ["LATE"]

LATE = "imported late: "


class _Says:
    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith("encodings."):  # to start a bot, which waits for a descriptor anyway
            print(f"{LATE}{name}", file=sys.stderr, flush=True)
        return None


_plays = Scheduler.run


async def _run(scheduler: Scheduler, *args: Any) -> None:
    sys.meta_path.insert(0, _Says)
    await _plays(scheduler, *args)


if __name__ == "__main__":
    with patch.object(Scheduler, "run", _run):
        sys.exit(main())
