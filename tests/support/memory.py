"""Storage in memory, for files that nobody needs after a power cut."""

from __future__ import annotations

import os
import shutil

__all__ = ["memory"]

_SHARED = "/dev/shm"


def memory(free_bytes: int = 0) -> str | None:
    """A folder in memory that has so much room, or None: containers have 64 MiB by default."""
    if not (os.path.isdir(_SHARED) and os.access(_SHARED, os.W_OK)):
        return None
    return _SHARED if shutil.disk_usage(_SHARED).free >= free_bytes else None
