"""Entry points of other packages, which may be broken in any way."""

from __future__ import annotations

import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from protocol import entry_points
from protocol.entry_points import (
    LeftOut,
    Package,
    first_left_out,
    has_others,
    leave_out,
    load_all,
    package_of,
    points,
    unsaid,
)
from protocol.errors import BadGame

GROUP = "protocol.games"


def install(folder: Path, name: str, text: str, version: str | None = "1.0") -> None:
    """What an installer would write for a package, without its modules."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(text, encoding="latin-1")
    if version is not None:
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata)


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch) -> list[LeftOut]:
    """What is left out by this test alone."""
    noted: list[LeftOut] = []
    monkeypatch.setattr(entry_points, "LEFT_OUT", noted)
    return noted


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: list[LeftOut]) -> Any:
    """A folder that packages are found in; what is found is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_points._found.cache_clear()
    yield tmp_path
    entry_points._found.cache_clear()


def loaded(group: str = GROUP) -> list[ModuleType]:
    """The modules of other packages that could be loaded."""
    read = load_all(group, lambda point, module: module if package_of(point) else None)
    return [module for module in read if module is not None]


def test_ours_come_first_and_then_others_by_name_and_package(folder: Path) -> None:
    install(folder, "zoo", f"[{GROUP}]\nape = zoo.ape\n")
    install(folder, "ark", f"[{GROUP}]\nape = ark.ape\n[other]\nbee = ark.bee\n")

    found = points(GROUP)
    assert [point.name for point in found[-2:]] == ["ape", "ape"]
    assert [str(package_of(point)) for point in found[-2:]] == ["ark 1.0", "zoo 1.0"]
    assert found[0].name == "ace_king_queen"
    assert package_of(found[0]) is None
    assert points(GROUP, "ape") == found[-2:]
    assert has_others()


def test_ours_are_no_others() -> None:
    ours = [point for point in entry_points._found() if package_of(point) is None]

    assert has_others() == (len(ours) < len(entry_points._found()))


def test_a_package_that_names_a_module_of_ours_is_left_out(
    folder: Path, left_out: list[LeftOut]
) -> None:
    install(folder, "zoo", f"[{GROUP}]\nkuhnx = arena.games.kuhnx\n")

    assert loaded() == []
    assert [(left.name, left.package) for left in left_out] == [("kuhnx", "zoo 1.0")]


def test_of_two_versions_of_a_package_the_first_in_the_path_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = folder / "first", folder / "second"
    for place, version in (second, "1.0"), (first, "2.0"):
        place.mkdir()
        install(place, "zoo", f"[{GROUP}]\nape = zoo.ape\n", version)
        monkeypatch.syspath_prepend(str(place))

    assert [package_of(point) for point in points(GROUP, "ape")] == [Package("zoo", "2.0")]


def test_a_point_without_a_package_is_of_its_module() -> None:
    assert package_of(EntryPoint("ape", "zoo.ape", GROUP)) == Package("zoo", "?")


@pytest.mark.parametrize(
    ("text", "version", "why"),
    [
        (f"[{GROUP}]\nape = zoo.ape\n", None, "it has no name or no version"),
        (f"[{GROUP}]\nape\n", "1.0", "cannot be read"),
        (f"[{GROUP}]\nape = \n", "1.0", "cannot be read"),
        (f"[{GROUP}]\nape = :x\n", "1.0", "cannot be read"),
        (f"[{GROUP}]\nape = zoo\xff\xfe\n", "1.0", "UnicodeDecodeError"),
    ],
)
def test_broken_metadata_leaves_its_package_out_and_no_other(
    text: str, version: str | None, why: str, folder: Path, left_out: list[LeftOut]
) -> None:
    install(folder, "zoo", text, version)
    install(folder, "ark", f"[{GROUP}]\nbee = ark.bee\n")

    assert [point.name for point in points(GROUP)][-1] == "bee"
    assert points(GROUP, "ape") == []
    [left] = left_out
    assert why in left.why
    assert "zoo-" in str(left)
    assert has_others()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def f(:\n", "SyntaxError"),
        (
            "import msgspec\nclass S(msgspec.Struct):\n    closes: int\nS()\n",
            "a game's convention is broken: closes: expected one in the description, got none",
        ),
        ("raise SystemExit(3)\n", "SystemExit: 3 at {file}:1"),
        ("import json\njson.loads('')\n", "JSONDecodeError: .* at {file}:2$"),
        ("def f():\n    f()\nf()\n", "RecursionError: .* at {file}:2$"),
        ("import no_such\n", "ModuleNotFoundError: No module named 'no_such' at {file}:1$"),
        (
            "\nfrom arena.games.rules import NO_SUCH\n",
            "c_broken cannot be imported without `arena` at {file}:2; bots have none$",
        ),
        ("raise BaseException('x\\n' * 999)\n", "BaseException"),
    ],
)
def test_a_module_that_cannot_be_imported_is_left_out_in_one_line(
    source: str, why: str, folder: Path, left_out: list[LeftOut]
) -> None:
    (folder / "c_broken.py").write_text(source)
    (folder / "c_whole.py").write_text("print('not a result')\n")
    install(folder, "ark", f"[{GROUP}]\nape = c_broken\n")
    install(folder, "zoo", f"[{GROUP}]\nbee = c_whole\n")

    try:
        assert [module.__name__ for module in loaded()] == ["c_whole"]
        assert [module.__name__ for module in loaded()] == ["c_whole"]
    finally:
        sys.modules.pop("c_whole", None)
    [left] = left_out  # once
    assert (left.name, left.package, left.group) == ("ape", "ark 1.0", GROUP)
    assert re.match(why.format(file=folder / "c_broken.py"), left.why), left.why
    assert len(str(left).splitlines()) == 1
    assert len(left.why) <= 500


def test_what_a_module_prints_does_not_mix_with_results(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "c_loud.py").write_text("print('hello')\n")
    install(folder, "zoo", f"[{GROUP}]\nbee = c_loud\n")

    try:
        loaded()
    finally:
        sys.modules.pop("c_loud", None)
    assert capsys.readouterr() == ("", "hello\n")


def test_a_reader_that_refuses_leaves_it_out_by_its_own_words(
    folder: Path, left_out: list[LeftOut]
) -> None:
    install(folder, "zoo", f"[{GROUP}]\nape = json\n")

    def refuse(point: EntryPoint, module: ModuleType) -> None:
        if package_of(point) is not None:
            raise BadGame("that is no game")

    assert len(list(load_all(GROUP, refuse))) == len(points(GROUP)) - 1
    assert left_out == [LeftOut(GROUP, "ape", "zoo 1.0", "that is no game")]


def test_ctrl_c_while_a_module_is_loaded_is_no_fault_of_it(
    folder: Path, left_out: list[LeftOut]
) -> None:
    (folder / "c_slow.py").write_text("raise KeyboardInterrupt\n")
    install(folder, "zoo", f"[{GROUP}]\nape = c_slow\n")

    with pytest.raises(KeyboardInterrupt):
        loaded()
    assert left_out == []


def test_a_fault_of_ours_is_raised(left_out: list[LeftOut]) -> None:
    def refuse(point: EntryPoint, module: ModuleType) -> None:
        raise BadGame("that is no game")

    with pytest.raises(BadGame):
        list(load_all(GROUP, refuse))
    assert left_out == []


def test_nothing_is_left_out_twice(left_out: list[LeftOut]) -> None:
    for _ in range(2):
        leave_out(LeftOut(GROUP, "ape", "zoo 1.0", "why"))

    assert [str(left) for left in left_out] == ["ape of zoo 1.0 is left out (protocol.games): why"]


def test_what_follows_from_the_first_fault_of_a_game_is_not_shown(left_out: list[LeftOut]) -> None:
    faults = [
        LeftOut(group, name, "zoo 1.0", "why")
        for name in ("ape", "bee")
        for group in ("protocol.games", "arena.games", "arena.bots")
    ]
    for fault in faults:
        leave_out(fault)

    assert first_left_out() == [faults[0], faults[3]]
    assert unsaid(f"unknown game; {faults[3]}") == "unknown game"
