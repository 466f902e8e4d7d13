"""`arena mistakes` and `arena habits`, of a match and of a competition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import arena
from arena.records.luck import luck_of
from arena.records.seat_document import seat_document
from protocol.strategy import find

if TYPE_CHECKING:
    from tests.arena.cli.conftest import Run


def test_a_match_says_how_much_of_what_was_won_is_luck(run: Run, tmp_path: Path) -> None:
    bots = [find("ace_king_queen", name)() for name in ("honest", "bluffer")]
    record = arena.play("ace_king_queen", bots, settings={"hands": 40}, seed=1).record
    file = tmp_path / "match.json"
    file.write_bytes(record.to_json())
    measured = luck_of(record)

    words = ("mistakes", str(file), "--seat", "2")
    line = run(*words).text.splitlines()[1]

    luck = {"unit": "chip", "gain": measured.gains[1], "luck": measured.luck[1]}
    assert run(*words, "--json").document["luck"] == luck
    without = measured.gains[1] - measured.luck[1]
    assert line.startswith(f"It won {measured.gains[1]:+.2f} chips, of which ")
    assert line.endswith(f" is luck: {without:+.2f} without it.")
    file.write_bytes(seat_document(record, 1, "m", ("ann", "ben")).to_json())
    assert run(*words, "--json").document["luck"] is None
