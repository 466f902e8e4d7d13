"""A program on the way that submissions take: its manifest, its build, sealed off, a competition."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from arena.competitions.live_arena import LiveArena
from arena.formats.spec import plan_of
from arena.games.rules import Game
from arena.sandbox import archive
from arena.sandbox.build import build
from arena.sandbox.command import Program, sealed_program
from arena.sandbox.manifest import manifest_of
from arena.storage.models import CompetitionReport
from arena.submissions.settings import SubmissionSettings

__all__ = ["play", "submitted"]


async def submitted(files: Mapping[str, str], folder: Path) -> Program:
    """The program of these files, built in an empty folder as an arena builds it."""
    sent, source, built = folder / "sent", folder / "source", folder / "built"
    for made in (sent, source, built):
        made.mkdir()
    for name, text in files.items():
        (sent / name).parent.mkdir(parents=True, exist_ok=True)
        (sent / name).write_text(text, encoding="utf-8")
    name, data = archive.pack(sent)
    with (folder / "program.tar").open("w+b") as tar:
        archive.canonical(name, io.BytesIO(data), tar)
        tar.seek(0)
        archive.unpack(tar, source)
    manifest = manifest_of(source)
    if not manifest.build:
        return sealed_program(source, manifest)
    limits, result = SubmissionSettings(), folder / "built.tar"
    outcome = await build(
        source, manifest, build_s=limits.build_s, build_mib=limits.build_mib, into=result
    )
    assert not outcome.why, f"{outcome.why}\n{outcome.log}"
    with result.open("rb") as tar:
        archive.unpack(tar, built)
    return sealed_program(built, manifest)


async def play(host: LiveArena, game: Game, program: Program) -> CompetitionReport:
    """A short competition of a program with itself, a process for each seat."""
    names = tuple(f"copy{number}" for number in range(game.seats))
    for name in names:
        await host.supervisor.launch_program(program, name)
    settings = game.vocabulary.read_settings(dict(game.short))
    wait_s = (host.limits.start_ms + host.limits.grace_ms) / 1000
    plan = plan_of(game, settings, names, limits=host.limits, wait_s=wait_s)
    return await host.play(host.compete(plan))
