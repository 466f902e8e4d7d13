from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.competitions.config import Config, ServeSection, example, read_config
from arena.competitions.planned_run import PlannedRun, plan_for
from arena.competitions.start import plan_by_hand
from arena.formats.formats import schedule_of, standings_of
from arena.formats.spec import Form, plan_of
from arena.formats.timetable import parse
from arena.games.catalogue import GAMES
from arena.submissions.settings import SubmissionSettings
from protocol.errors import UsageError
from protocol.messages import Limits
from tests.support.cases import CaseFile, wrapped
from tests.support.documents import DOCUMENTS
from tests.support.toy_games import install_toy

Read = Callable[[str], Config]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def call(text: str) -> Config:
        path = tmp_path / "class.toml"
        path.write_text(text, encoding="utf-8")
        return read_config(path)

    return call


@pytest.fixture
def refusal(read: Read, tmp_path: Path) -> Callable[[str], str]:
    """What is said of a file, without the file's name in front."""

    def call(text: str) -> str:
        with pytest.raises(UsageError) as caught:
            read(text)
        said = str(caught.value)
        front = re.match(rf"{tmp_path / 'class.toml'}(, line \d+(, (run|bot) '.*?')?)?: ", said)
        assert front is not None
        assert "\n" not in said
        return said[front.end() :]

    return call


def different(read: Any, usual: Any) -> str:
    """The fields that are not as usual; of settings those that are not."""
    shown = []
    for name in read.__struct_fields__:
        is_, was = getattr(read, name), getattr(usual, name)
        if is_ == was or name in ("at", "run"):
            continue
        if isinstance(is_, Limits):
            shown.append(f"{name} = ({different(is_, was)})")
        elif name == "settings" and isinstance(was, dict):
            shown += [f"{key} = {one!r}" for key, one in is_.items() if one != was.get(key)]
        else:
            shown.append(f"{name} = {msgspec.to_builtins(is_)!r}")
    return ", ".join(shown) or "as usual"


def told_of(found: Config, folder: Path) -> Iterator[str]:
    """What a file says that is not as usual: by section, and of each run and its plan."""
    for section in ("serve", "limits", "bus", "submissions"):
        usual = {"submissions": SubmissionSettings()}.get(section, getattr(Config(), section))
        if getattr(found, section) not in (usual, None):
            yield f"{section}: {different(getattr(found, section), usual)}"
    if found.games:
        yield f"games: {found.games}"
    for bot in found.bots:
        assert bot.program.folder == folder
        stdio = "stdio: " * bot.program.stdio
        yield f"bot {bot.name} of {bot.game}: {stdio}{' '.join(bot.program.words)}"
    for run in found.runs:
        versions = {"ann": 4} if found.submissions else {}
        teams = {"ann": "red", "dee": "red"} if run.players else {}
        plan = plan_for(run, found.limits, found.games, ("ann", "ben"), teams, versions=versions)
        assert plan.run == run.name
        rules = GAMES[run.game].vocabulary.read_settings({})
        as_usual = plan_of(GAMES[run.game], rules, ("ann", "ben"), run.form)
        said = different(run, PlannedRun(name=run.name, game=run.game, form=run.form))
        yield f"run {run.name} of {run.game}, {run.form}: {said}; plan: {different(plan, as_usual)}"


READ = CaseFile(Path(__file__).with_name("read_settings.cases"))


@pytest.mark.parametrize("title", READ.titles)
def test_what_is_read(read: Read, tmp_path: Path, title: str) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "bot.py").touch()

    def told(lines: Sequence[str]) -> list[str]:
        found = read("\n".join(lines).replace(" | ", "\n"))
        assert [file.name for file in found.files] == ["class.toml"]
        shown = [text.replace(str(tmp_path), "HERE") for text in told_of(found, tmp_path)]
        return [*lines, *(line for text in shown for line in wrapped(text))]

    READ.check_whole(title, told)


def test_the_file_of_the_manual(read: Read) -> None:
    manual = DOCUMENTS["arena/competitions/configuration.md"]
    [text] = re.findall(r"```toml\n(.*?)```", manual, re.DOTALL)
    ours = read(text)

    assert set(tomllib.loads(text)) == {"serve", "limits", "games", "bot"}
    assert ours.limits == Limits(decision_ms=500, memory_mib=256)
    assert [entry.name for entry in ours.bots] == ["ann", None]
    for field in (*ServeSection.__struct_fields__, "command", "name", "game"):
        assert f"`{field}`" in manual


# ---- Runs


def test_times_are_read_as_they_are_written(read: Read) -> None:
    at = ["Mon 18:00", datetime.fromisoformat("2026-11-23T18:00:00+01:00")]
    evening, ladder = read("""
        [[run]]
        name = "evening"
        game = "gin"
        at = ["Mon 18:00", 2026-11-23T18:00:00+01:00]
        [[run]]
        game = "high_low"
        form = "ladder"
        until = "Fri 18:00"
    """).runs
    plan = plan_for(evening, Limits(), {}, ("ann", "ben"), due_at=4.0)

    assert (evening.at, ladder.until) == (parse(at), parse("Fri 18:00"))
    assert plan.due_at == 4.0


def test_on_a_ladder_a_lost_connection_has_ten_seconds_unless_its_run_says_otherwise(
    read: Read,
) -> None:
    found = read("""
        [limits]
        grace_ms = 40_000
        [[run]]
        game = "akq"
        [[run]]
        name = "ladder"
        game = "akq"
        form = "ladder"
        [[run]]
        name = "patient"
        game = "akq"
        form = "ladder"
        limits = { grace_ms = 60_000 }
    """)
    graces = [
        plan_for(run, found.limits, found.games, ("ann", "ben")).limits.grace_ms
        for run in found.runs
    ]
    assert graces == [40_000, 10_000, 60_000]

    by_hand = plan_by_hand(GAMES["ace_king_queen"], found, form="ladder")
    assert by_hand.limits == Limits(grace_ms=10_000)

    changed = Limits(bank_ms=9, grace_ms=70_000)  # by options
    patient = plan_for(found.runs[2], changed, found.games, ("ann", "ben"))
    assert patient.limits == Limits(bank_ms=9, grace_ms=60_000)

    impatient = Limits(grace_ms=2_000)
    ladder = plan_for(found.runs[1], impatient, found.games, ("ann", "ben"))
    assert ladder.limits == impatient


RUN = "[[run]]\ngame = "


def refusals() -> list[tuple[str, str]]:
    """What a file says, and what is said of it."""
    lines = Path(__file__).with_name("refused_settings.cases").read_text(encoding="utf-8")
    told = [line for line in lines.splitlines() if line[0] != "#"]
    return [
        (text, said.removeprefix("> ")) for text, said in zip(told[::2], told[1::2], strict=True)
    ]


@pytest.mark.parametrize(("text", "said"), refusals())
def test_what_cannot_be_is_told_with_its_place(
    refusal: Callable[[str], str], text: str, said: str
) -> None:
    text = text.replace(" | ", "\n")
    if found := re.match(r"(\w+): (.*)", text, re.DOTALL):
        game, fields = found.groups()
        text, said = f"{RUN}'{game}'\n{fields}", f"run[0].{said}"
    assert refusal(text) == said


PLACES = """\
[limits]
[[run]]
game = "akq"
name = "friday" # its first
[[run]]  # the second
game = "gin"
name = 'cup'
matches = 0
players = [
  "ann", "ben" ]
[run.limits]
decision_ms = 0
[games.gin]
"""


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("", ""), ", line 8, run 'cup'"),
        (("matches = 0", ""), ", line 11, run 'cup'"),
        (('game = "akq"', ""), ", line 2, run 'friday'"),
        (("[limits]", "[[bot]]"), ", line 1"),
        (("[limits]", "[limits]\ndecision_ms = 0"), ", line 2"),
        (("[limits]", "[limits]\n# more\nbanks_ms = 0"), ", line 3"),
        (("[limits]", "[games.akq]\nhands = true"), ", line 2"),
    ],
)
def test_a_mistake_in_a_table_of_several_has_its_line_and_the_name(
    read: Read, tmp_path: Path, change: tuple[str, str], place: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(PLACES.replace(*change, 1))

    assert str(caught.value).startswith(f"{tmp_path / 'class.toml'}{place}: ")


def test_a_split_of_a_game_that_has_none_is_told_when_it_is_read(
    refusal: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = install_toy(2, monkeypatch).name

    assert refusal(f"{RUN}'{name}'\nsplit = 2") == (
        f"run[0].split: expected a game whose matches can be split, got {name}; raise `matches`"
    )


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f"{RUN}'tcp'\nsettings = {{ stake = 900000000000 }}", "run[0]"),
        ("[games.tcp]\nstake = 1000000000000", "games.tcp"),
    ],
)
def test_settings_must_go_together(refusal: Callable[[str], str], text: str, where: str) -> None:
    assert refusal(text).startswith(f"{where}: settings of three_card_poker: ")


# ---- The example


def test_the_example_can_be_played(read: Read) -> None:
    found = read(example())

    assert {run.game for run in found.runs} == set(GAMES)
    assert {run.form for run in found.runs} == set(Form)
    assert [run.name for run in found.runs if run.at is None] == ["warm-up"]
    for run in found.runs:
        for at in (run.at, run.until):
            assert at is None or at.next_after(datetime(2026, 11, 1, tzinfo=UTC))
        players = ("ann", "ben", "cem", "dee")
        plan = plan_for(run, found.limits, found.games, players)
        plan = msgspec.structs.replace(plan, seed="00", house=("x", "y", "z"))
        assert run.form is Form.LADDER or next(schedule_of(plan))
        standings_of(plan)


def test_what_is_switched_off_in_the_example_can_be_switched_on(read: Read, tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "bot.py").touch()
    switched_on = re.sub(
        r"^# (?=\w+ = |\[\[|\[sub|\[bus)", "", example(), flags=re.MULTILINE
    ).replace("python3", "sh")
    found = read(switched_on)

    assert switched_on.count("\n[[bot]]") == 1
    assert found.bots[0].name == "ann"
    assert found.submissions == SubmissionSettings(
        opens=datetime(2026, 11, 16, 18).timestamp(),
        closes=datetime(2026, 11, 20, 17).timestamp(),
        languages=("python", "java"),
        cores=2,
    )
    assert found.serve.tls_key == str(tmp_path / "privkey.pem")
    assert found.bus.key == str(tmp_path / "bus" / "arena.nk")


def test_the_example_names_all_that_a_run_can_say() -> None:
    [listed] = re.findall(r"What is played\n(.*?)\n\n", example(), re.DOTALL)
    ladder = example().rpartition("[[run]]")[2]

    for field in PlannedRun.__struct_fields__:
        assert re.search(rf"\b{field}\b", listed + ladder), field


@pytest.mark.parametrize(
    "text",
    [
        "[limits",
        "tables = ",
        "a = 1\na = 2",
        "x = " + "[" * 100_000,
        f"[limits]\ntables = {'9' * 5000}",
    ],
    ids=["table", "value", "twice", "nested", "digits"],
)
def test_what_is_no_toml(refusal: Callable[[str], str], text: str) -> None:
    assert refusal(text).startswith("expected TOML")


def test_a_file_as_windows_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "class.toml"
    text = "# Müllers Klasse\n" + example()
    path.write_text(text, encoding="utf-8")
    read = read_config(path)
    for encoding in ("utf-8-sig", "utf-16"):
        path.write_text(text, encoding=encoding, newline="\r\n")
        assert read_config(path) == read
    path.write_text(text, encoding="cp1252")

    with pytest.raises(UsageError, match=r"class\.toml: expected .* like Windows-1252"):
        read_config(path)


@pytest.mark.parametrize(
    ("name", "why"), [("nowhere.toml", "No such file"), (".", "Is a directory")]
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"cannot be read: {why}"):
        read_config(tmp_path / name)
