"""The part of `arena check-game` that runs a game's own view: a match, as each viewer sees it.

If Node is installed, it runs the view with the modules of the page. Otherwise only the text of the
view is searched for its exports.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from arena.authoring.playout import random_record
from arena.games.catalogue import view_files, view_path
from arena.games.rules import Game
from arena.records.rounds import rounds_of
from arena.records.visibility import seen
from protocol.watching import View

__all__ = ["broken_view"]

_EXPORTS = ("start", "step", "describe", "Table", "Moves")
_NODE_S = 60  # a match in three views takes a moment
# States are frozen, as the page returns to earlier ones. A fault ends the match for its viewer.
_PLAY = """
import { readFileSync } from "node:fs";
const { path, exports, players, settings, rounds } = JSON.parse(readFileSync(0, "utf8"));
const say = (text) => console.log(JSON.stringify(text));
const raised = (error) => {
  const place = /[^/\\s]+\\.js:\\d+/.exec(error?.stack ?? "");
  return `raised ${error}${place ? ` at ${place[0]}` : ""}`;
};
const frozen = (value) => {
  if (!value || typeof value !== "object" || Object.isFrozen(value)) return value;
  Object.values(Object.freeze(value)).forEach(frozen);
  return value;
};
const view = await import(path).catch((error) => say(`its import ${raised(error)}`));
const missing = view ? exports.filter((name) => typeof view[name] !== "function") : [];
for (const name of missing) say(`it exports no function \\`${name}\\``);
if (view && !missing.length) for (const { kind, seats, events } of rounds) {
  let doing = "`start`";
  try {
    let state = frozen(view.start({ settings, players, view: { kind, seats } }));
    for (const event of events) {
      const what = event.news?.kind ?? event.question?.kind ?? event.event;
      doing = `\\`describe\\` of \\`${what}\\``;
      const text = event.event === "over" ? null : view.describe(event, players, state);
      if (text && typeof text !== "string") throw new TypeError("expected a text or null");
      doing = `\\`step\\` at \\`${what}\\``;
      state = frozen(view.step(state, event));
    }
  } catch (error) {
    say(`${doing} ${raised(error)}, in the view of ${kind}`);
  }
}
"""


def broken_view(game: Game, seed: int) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the view of a game; nothing if it has none."""
    path = view_path(game)
    if path is None:
        return
    if (node := shutil.which("node")) is not None:
        yield from (("view", f"{game.view}: {text}") for text in _played(node, path, game, seed))
        return
    text = view_files()[path].decode(errors="replace")
    for name in _EXPORTS:
        if not re.search(rf"\bexport\b[^;(]*\b{name}\b", text):
            yield "view", f"{game.view}: it exports no function `{name}`"


def _played(node: str, path: str, game: Game, seed: int) -> Iterator[str]:
    """Play a match in Node for a spectator, a seat and an all-seeing viewer; yield the faults."""
    record = random_record(game, game.vocabulary.read_settings(game.short), seed)
    told = [event for each in rounds_of(record) for event in each.events]
    views = View("public"), View("seat", (0,)), View("all")
    given: dict[str, Any] = {
        "path": f"./games/{path}",
        "exports": _EXPORTS,
        "players": [f"ann-{seat + 1}" for seat in range(game.seats)],
        "settings": record.settings,
        "rounds": [
            {"kind": view.kind, "seats": view.seats, "events": seen(told, view, game.seats)}
            for view in views
        ],
    }
    with TemporaryDirectory() as folder, as_file(files("arena") / "web" / "page") as page:
        there = Path(folder) / "page"
        shutil.copytree(page, there)
        for name, body in view_files().items():
            (there / "games" / name).parent.mkdir(parents=True, exist_ok=True)
            (there / "games" / name).write_bytes(body)
        (there / "games/games.js").write_text("export const GAMES = {};\n")
        (there / "package.json").write_text('{"type": "module"}')
        (there / "play.js").write_text(_PLAY)
        try:
            done = subprocess.run(
                [node, "play.js"],
                cwd=there,
                input=json.dumps(given),
                capture_output=True,
                text=True,
                timeout=_NODE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            yield f"a match is not over after {_NODE_S} seconds"
            return
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    yield from map(json.loads, lines)
    if done.returncode and not lines:
        yield f"node ended with {done.returncode}: {done.stderr.strip().rpartition(chr(10))[2]}"
