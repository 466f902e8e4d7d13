"""Writes all vectors and all that is generated from the types, or with `--check` says what is stale.

`python -m tests.tools.vectors [--check]` goes through the golden transcripts
(`tests/tools/transcripts.py`), the cards and the matches in `protocol/vectors/`, the page
`arena/games/fields.md`, and then what
`python -m protocol.schema` writes, as the pages show transcripts. Games from outside have no part
in it: `arena vectors` is for them.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from arena.games.catalogue import GAMES
from arena.games.shuffle import Stream, commitment, match_key
from arena.records.document import MatchDocument, read, sealed
from arena.records.verify import check
from protocol.schema import __main__ as schema
from protocol.schema.docstrings import of_class
from tests.support.sample_database import play
from tests.support.scenes import DEALT
from tests.support.scenes.scene import DealtVector
from tests.tools import transcripts

__all__ = ["cards", "main", "matches"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "protocol" / "vectors"

_PAGE = ROOT / "arena" / "games" / "fields.md"
_FIELDS = re.compile(r"^(<!-- fields: (\S+) -->)$.*?^(<!-- end -->)$", re.DOTALL | re.MULTILINE)

_PLAYERS = ("ann", "Zoë", "cem", "dee", "eva", "fay", "gus", "hal", "ida", "jon")
_STARTED_AT = 1763739440.0  # the first match is a second later
_TOOK_S = 0.125


def cards(kept: str) -> str:
    """What `cards.json` should hold for the seeds and nonces that it has."""
    made = ",\n".join(map(_vector, json.loads(kept)))
    return f"[\n{made}\n]\n"


def _vector(kept: dict[str, Any]) -> str:
    seed = bytes.fromhex(kept["seed"])
    key = match_key(seed, kept["nonces"])
    stream = Stream(key)
    made = {
        "seed": kept["seed"],
        "commitment": commitment(seed),
        "nonces": kept["nonces"],
        "key": key.hex(),
        "stream": bytes(stream.below(256) for _ in range(64)).hex(),
        **{one.key: _dealt(game, one, key) for game, all_ in DEALT.items() for one in all_},
    }
    in_order = [
        *(name for name in kept if name in made),
        *(name for name in made if name not in kept),
    ]
    lines = (f"    {json.dumps(name)}: {_json(made[name])}" for name in in_order)
    return "  {\n" + ",\n".join(lines) + "\n  }"


def _dealt(game: str, vector: DealtVector, key: bytes) -> list[Any]:
    rules = GAMES[game]
    settings = rules.vocabulary.read_settings(vector.settings)
    deals: list[Any] = list(islice(rules.deals(settings, Stream(key)), vector.deals))
    if not vector.per:
        return deals
    return [deals[at : at + vector.per] for at in range(0, vector.deals, vector.per)]


def _json(value: object) -> str:
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def matches(kept: bytes) -> bytes:
    """What `matches.jsonl` should hold: the matches that it has, and one of each further game.

    A match that the rules play differently now gives way to a new one of its game.
    """
    lines = [line for line in kept.splitlines() if _fits(line)]
    there = {json.loads(line)["game"] for line in lines}
    new = (game for game in DEALT if game not in there)
    lines += [_match(game, number) for number, game in enumerate(new, start=len(lines) + 1)]
    return b"".join(line + b"\n" for line in lines)


def fields_page(kept: str) -> str:
    """The page of a game's fields, with its tables as the classes and their docstrings have them."""
    return _FIELDS.sub(lambda found: f"{found[1]}\n\n{_fields(found[2])}\n\n{found[3]}", kept)


def _fields(name: str) -> str:
    module, _, cls = name.rpartition(".")
    struct = getattr(import_module(module), cls)
    words = of_class(struct)
    rows = ["| field | type | default | what it is |", "|---|---|---|---|"]
    [made] = ast.parse(inspect.getsource(struct)).body
    assert isinstance(made, ast.ClassDef)
    for line in made.body:
        if isinstance(line, ast.AnnAssign):
            field, kind = ast.unparse(line.target), ast.unparse(line.annotation)
            default = "" if line.value is None else f"`{ast.unparse(line.value)}`"
            cells = (f"`{field}`", f"`{kind}`", default, words.of(field))
            rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def _fits(line: bytes) -> bool:
    document = read(line)
    assert isinstance(document, MatchDocument), "all are documents"
    reasons = check(document).reasons
    if reasons:
        print(f"{document.match} is dropped: {'; '.join(reasons)}", file=sys.stderr)
    return not reasons


def _match(game: str, number: int) -> bytes:
    result = play(game, number)
    competition = f"{game}-{number:08x}"
    document = MatchDocument(
        match=f"{competition}-1",
        competition=competition,
        pairing=number,
        players=_PLAYERS[: GAMES[game].seats],
        game=game,
        scores=result.scores,
        points=result.points,
        termination=result.termination,
        started_at=_STARTED_AT + number,
        finished_at=_STARTED_AT + number + _TOOK_S,
        digest="",
        record=msgspec.Raw(result.record.to_json()),
    )
    return msgspec.structs.replace(document, digest=sealed(document)).to_json()


def _stale() -> Iterator[tuple[Path, bytes]]:
    """The files that are out of date, with what they should hold."""
    for path, make in (
        (FOLDER / "cards.json", lambda kept: cards(kept.decode()).encode()),
        (FOLDER / "matches.jsonl", matches),
        (_PAGE, lambda kept: fields_page(kept.decode()).encode()),
    ):
        kept = path.read_bytes()
        if (text := make(kept)) != kept:
            yield path, text


def main(words: list[str]) -> int:
    """Write what has changed, or with `--check` name it; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.vectors")
    parser.add_argument("--check", action="store_true", help="write nothing")
    is_check = parser.parse_args(words).check
    status = transcripts.main(words)
    for path, text in _stale():
        if is_check:
            print(f"stale: {path}; run `python -m tests.tools.vectors`", file=sys.stderr)
            status = 1
        else:
            path.write_bytes(text)
            print(f"wrote {path}")
    return schema.main(words) or status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
