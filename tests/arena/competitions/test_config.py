from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.competitions.config import BusSection, Config, ServeSection, example, read_config
from arena.competitions.planned_run import PAUSE_S, Participants, PlannedRun, plan_for
from arena.competitions.start import plan_by_hand
from arena.formats.formats import schedule_of, standings_of
from arena.formats.spec import WAIT_S, Form, Plan, Settling, Take
from arena.formats.timetable import parse
from arena.games import GAMES
from arena.strength.settle import Goal
from arena.submissions.settings import SubmissionSettings
from protocol.errors import UsageError
from protocol.messages import Limits
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
        front = f"{tmp_path / 'class.toml'}: "
        assert said.startswith(front)
        assert "\n" not in said
        return said.removeprefix(front)

    return call


def test_an_empty_file_changes_nothing(read: Read) -> None:
    found = read("")

    assert found == Config(files=found.files)
    assert [file.name for file in found.files] == ["class.toml"]
    assert (found.serve, found.limits) == (ServeSection(), Limits())


def test_everything(read: Read, tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "bot.py").touch()
    found = read("""
        [serve]
        host = "0.0.0.0"
        port = 0
        db = "class.db"
        players = 4
        matches = 2
        once = true
        practice = true
        open = true
        tls_cert = "tls/cert.pem"
        tls_key = "/etc/key.pem"
        log = "class.log"
        [limits]
        decision_ms = 500
        memory_mib = 256
        [games.akq]
        hands = 10
        [games.blackjack]
        shuffle = "riffle"
        [games.gin_rummy]
        starter = 1
        [[bot]]
        command = "stdio: sh ann/bot.py"
        name = "ann"
        game = "akq"
        [[bot]]
        command = "sh -c true"
    """)

    assert found.serve == ServeSection(
        host="0.0.0.0",
        port=0,
        db=str(tmp_path / "class.db"),
        players=4,
        matches=2,
        once=True,
        practice=True,
        open=True,
        tls_cert=str(tmp_path / "tls/cert.pem"),
        tls_key="/etc/key.pem",
        log=str(tmp_path / "class.log"),
    )
    assert found.limits == Limits(decision_ms=500, memory_mib=256)
    assert found.games == {
        "ace_king_queen": {"hands": 10},
        "blackjack": {"shuffle": "riffle"},
        "gin_rummy": {"starter": 1},
    }
    ann, other = found.bots
    assert (ann.name, ann.game) == ("ann", "ace_king_queen")
    assert (ann.program.stdio, ann.program.words) == (True, ("sh", "ann/bot.py"))
    assert (other.name, other.game) == (None, None)
    assert ann.program.folder == other.program.folder == tmp_path


def test_the_file_of_the_manual(read: Read) -> None:
    manual = DOCUMENTS["arena/competitions/configuration.md"]
    [text] = re.findall(r"```toml\n(.*?)```", manual, re.DOTALL)
    ours = read(text)

    assert set(tomllib.loads(text)) == {"serve", "limits", "games", "bot"}
    assert ours.limits == Limits(decision_ms=500, memory_mib=256)
    assert [entry.name for entry in ours.bots] == ["ann", None]
    for field in (*ServeSection.__struct_fields__, "command", "name", "game"):
        assert f"`{field}`" in manual


@pytest.mark.parametrize("db", ["/var/class.db", "postgresql+psycopg://arena@db/class"])
def test_a_whole_path_or_address_stays_what_it_is(read: Read, db: str) -> None:
    assert read(f'[serve]\ndb = "{db}"\nlog = "-"').serve == ServeSection(db=db, log="-")


# ---- Runs


def the_run(config: Config) -> PlannedRun:
    [run] = config.runs
    return run


def test_a_run_of_which_only_the_game_is_said(read: Read) -> None:
    games = ("akq", "gin", "high_low", "tcp", "blackjack")
    runs = read("".join(f"[[run]]\ngame = '{game}'\n" for game in games)).runs
    akq, gin, high_low, poker, blackjack = runs

    assert akq == PlannedRun(
        name="ace_king_queen",
        game="ace_king_queen",
        form=Form.ROUND_ROBIN,
        least=2,
        with_itself=True,
    )
    assert (gin.form, gin.least, gin.with_itself) == (Form.ROUND_ROBIN, 2, False)
    assert (high_low.form, high_low.least) == (Form.ELIMINATION, 4)
    assert (poker.form, poker.least) == (Form.LEAGUE, 1)
    assert (blackjack.name, blackjack.form) == ("blackjack", Form.LEAGUE)
    assert (gin.at, gin.who) == (None, Participants.CONNECTED)
    assert (gin.wait_s, gin.pause_s) == (WAIT_S, PAUSE_S)


def test_a_run_of_which_everything_is_said(read: Read) -> None:
    found = read("""
        [limits]
        bank_ms = 7
        memory_mib = 64
        [games.gin]
        games = 100
        target = 20
        [[run]]
        name = "evening"
        game = "gin"
        form = "round_robin"
        at = ["Mon 18:00", 2026-11-23T18:00:00+01:00]
        players = ["ann", "ben", "cem"]
        least = 3
        matches = 3
        split = 4
        with_itself = true
        wait_s = 90
        house = ["expert", "expert"]
        settings = { target = 30 }
        limits = { decision_ms = 500 }
    """)
    run = the_run(found)
    plan = plan_for(
        *(run, found.limits, found.games, ("ann", "ben")), {"ann": "red", "dee": "red"}, due_at=4.0
    )

    assert run.at == parse(["Mon 18:00", datetime.fromisoformat("2026-11-23T18:00:00+01:00")])
    assert (run.who, run.named) == (Participants.NAMED, ("ann", "ben", "cem"))
    assert run.house == ("expert", "expert")
    assert plan == Plan(
        game="gin_rummy",
        form=Form.ROUND_ROBIN,
        settings={"games": 25, "target": 30, "starter": None, "max_turns": 200, "max_rounds": 25},
        players=("ann", "ben"),
        matches=12,
        with_itself=True,
        limits=Limits(decision_ms=500, bank_ms=7, memory_mib=64),
        wait_s=90,
        teams={"ann": "red"},
        run="evening",
        due_at=4.0,
    )


def test_a_ladder(read: Read) -> None:
    found = read("""
        [[run]]
        game = "high_low"
        form = "ladder"
        players = "roster"
        at = 2026-11-23T18:00:00
        until = "Fri 18:00"
        pause_s = 1.5
    """)
    run = the_run(found)

    assert (run.form, run.who, run.named) == (Form.LADDER, Participants.ROSTER, ())
    assert run.until == parse("Fri 18:00")
    assert plan_for(run, found.limits, found.games, ()).pause_s == 1.5


def test_K3_a_run_has_the_settings_of_a_league_unless_it_says_its_own(read: Read) -> None:
    found = read("""
        [[run]]
        game = "tcp"
        [[run]]
        name = "own"
        game = "tcp"
        settings = { stake = 1000, goal = 2000, rounds = 200 }
        [[run]]
        game = "blackjack"
    """)
    *plans, blackjack = [plan_for(run, found.limits, found.games, ("ann",)) for run in found.runs]

    assert (blackjack.settings["shuffle"], blackjack.pause_s) == ("uniform", 0)
    settings = [[plan.settings[name] for name in ("stake", "goal", "rounds")] for plan in plans]
    assert settings == [[1000, 1125, 1000], [1000, 2000, 200]]


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


def test_a_split_of_a_game_that_has_none_is_told_when_it_is_read(
    refusal: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = install_toy(2, monkeypatch).name

    assert refusal(f"{RUN}'{name}'\nsplit = 2") == (
        f"run[0].split: expected a game whose matches can be split, got {name}; raise `matches`"
    )


SAID: list[tuple[str, dict[str, Any]]] = [
    ("", {"forgive": 0, "take": Take.CONNECTED}),
    ("forgive = 2", {"forgive": 2}),
    *((f"take = '{take}'", {"take": take, "versions": {"ann": 4}}) for take in Take),
]


@pytest.mark.parametrize("game", ["akq", "gin", "tcp", "blackjack"])
@pytest.mark.parametrize(("fields", "said"), SAID)
def test_what_a_run_says_is_in_its_plan(
    read: Read, game: str, fields: str, said: dict[str, Any]
) -> None:
    found = read(f"[submissions]\n{RUN}'{game}'\n{fields}")
    plan = plan_for(found.runs[0], found.limits, {}, ("ann", "ben"), versions={"ann": 4})

    assert {name: getattr(plan, name) for name in said} == said


def test_K6_a_run_that_settles_says_so_in_its_plan(read: Read) -> None:
    found = read(RUN + "'akq'\nsettle = 'pairs'\nlevel = 1.5\nmatches = 10\nmost = 50")
    usual = read(RUN + "'blackjack'\nsettle = 'order'").runs[0]
    plan, by_default = (plan_for(run, Limits(), {}, ("ann", "ben")) for run in (*found.runs, usual))

    assert plan.settle == Settling(goal=Goal.PAIRS, level=1.5, most=50)
    assert (plan.matches, plan.with_itself) == (10, False)
    assert by_default.settle == Settling(goal=Goal.ORDER, level=2.0, most=1_000)
    assert by_default.matches == 20


def test_a_run_that_does_not_settle_has_a_plan_as_ever(read: Read) -> None:
    found = read(RUN + "'akq'")
    plan = plan_for(found.runs[0], found.limits, {}, ("ann", "ben"))

    assert b"settle" not in msgspec.json.encode(plan)
    assert (plan.matches, plan.with_itself) == (1, True)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f"{RUN}'tcp'\nsettings = {{ stake = 900000000000 }}", "run[0]"),
        ("[games.tcp]\nstake = 1000000000000", "games.tcp"),
    ],
)
def test_settings_must_go_together(refusal: Callable[[str], str], text: str, where: str) -> None:
    assert refusal(text).startswith(f"{where}: settings of three_card_poker: ")


# ---- Workers


def test_the_files_of_the_bus_are_found_from_the_folder_of_the_file(
    read: Read, tmp_path: Path
) -> None:
    bus = read("[bus]\nurl = 'tls://a:4222'\nkey = 'bus/arena.nk'\nca = '/etc/ca.pem'").bus

    assert bus == BusSection(
        url="tls://a:4222", key=str(tmp_path / "bus" / "arena.nk"), ca="/etc/ca.pem"
    )
    assert read("").bus.url is None


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
