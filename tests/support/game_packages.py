"""Packages as `arena new-game` writes them, changed and put where a process finds them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arena.authoring.game_package import game_package
from tests.support.in_process import CommandProcess

__all__ = ["Edits", "breaches", "checked_game", "install_game"]

Edits = Mapping[str, tuple[tuple[str, str], ...]]
"""By file of the package, such as `rules.py`: what stands there, and what shall stand there."""


def install_game(folder: Path, name: str, seats: int, edits: Edits | None = None) -> None:
    """Write a game's modules and what an installer would write; for a `PYTHONPATH`.

    It has a view if that is edited.
    """
    package = folder / name
    package.mkdir(parents=True)
    has_view = "view.js" in (edits or {})
    for file, text in game_package(name, seats, view=has_view).files.items():
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


def checked_game(commands: CommandProcess, folder: Path, name: str, *words: str) -> Any:
    """The report of `arena check-game`."""
    ran = commands.arena(folder, "check-game", name, "--seed", "1", "--json", *words)
    assert ran.out, ran.err
    return json.loads(ran.out)


def breaches(report: Any) -> list[str]:
    """A line for each convention that a game breaks."""
    return [f"{each['convention']}: {each['text']}" for each in report["broken"]]
