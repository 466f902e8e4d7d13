"""Packages as `arena new-game` writes them, changed and put where a process finds them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from arena.authoring.game_package import game_package

__all__ = ["Edits", "install_game"]

Edits = Mapping[str, tuple[tuple[str, str], ...]]
"""By file of the package, such as `rules.py`: what stands there, and what shall stand there."""


def install_game(folder: Path, name: str, seats: int, edits: Edits | None = None) -> None:
    """Write a game's modules and what an installer would write; for a `PYTHONPATH`."""
    package = folder / name
    package.mkdir(parents=True)
    for file, text in game_package(name, seats).files.items():
        if not file.startswith(f"{name}/"):
            continue
        part = Path(file).name
        for old, new in (edits or {}).get(part, ()):
            assert old in text, f"{part} has {old!r}"
            text = text.replace(old, new)
        (package / part).write_text(text, encoding="utf-8")
    info = folder / f"{name}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    groups = {"protocol.games": "vocabulary", "arena.games": "rules", "arena.bots": "bots"}
    (info / "entry_points.txt").write_text(
        "".join(f"[{group}]\n{name} = {name}.{part}\n" for group, part in groups.items())
    )
