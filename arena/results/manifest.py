"""The manifest of an export lists its files and folders, for `arena verify` to read them again."""

from __future__ import annotations

from pathlib import Path

import msgspec

from arena.records.document import UNREADABLE
from protocol.errors import UsageError

__all__ = ["MANIFEST", "MATCHES", "Exported", "ExportedCompetition", "manifest_of"]

MANIFEST = "export.json"  # tells the files of an export from foreign ones
MATCHES = "matches.jsonl"  # of a competition, one match document per line


class ExportedCompetition(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of one competition; `matches` is the number of lines in its `MATCHES`.

    Of these, `uncounted` are void or taken back: no table counts them.
    """

    id: str
    folder: str
    files: tuple[str, ...]
    matches: int
    uncounted: int = 0


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest: the files in the folder itself, and the folders of the competitions."""

    files: tuple[str, ...]
    competitions: tuple[ExportedCompetition, ...]


def manifest_of(folder: Path) -> Exported:
    """Read the manifest of an export; raises UsageError if the folder has none."""
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Exported)
    except (OSError, *UNREADABLE):
        raise UsageError(
            f"expected a folder that arena export has written, {folder} has no {MANIFEST} of one"
        ) from None
