from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from arena import config
from arena.config import Config, Serve, read_config
from protocol.errors import UsageError
from protocol.messages import Limits

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
    assert (found.serve, found.limits) == (Serve(), Limits())


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

    assert found.serve == Serve(
        host="0.0.0.0",
        port=0,
        db=str(tmp_path / "class.db"),
        players=4,
        matches=2,
        once=True,
        practice=True,
        open=True,
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
    manual = Path(config.__file__).with_name("README.md").read_text(encoding="utf-8")
    [text] = re.findall(r"```toml\n(.*?)```", manual, re.DOTALL)
    ours = read(text)

    assert set(tomllib.loads(text)) == {"serve", "limits", "games", "bot"}
    assert ours.limits == Limits(decision_ms=500, memory_mib=256)
    assert [entry.name for entry in ours.bots] == ["ann", None]
    for field in (*Serve.__struct_fields__, "command", "name", "game"):
        assert f"`{field}`" in manual


def test_a_whole_path_stays_what_it_is(read: Read, tmp_path: Path) -> None:
    assert read('[serve]\ndb = "/var/class.db"').serve.db == "/var/class.db"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[limit]",
            "limit: unknown table; expected some of: [serve], [limits], [games.<game>], [[bot]]",
        ),
        ("limits = 4", "[limits]: expected a table, got 4"),
        ("[[serve]]", "[serve]: expected a table, got a list"),
        ("games.akq = true", "[games.akq]: expected a table, got true"),
        ("[bot]", "bot: expected tables [[bot]], got a table"),
        ("bot = [4]", "[[bot]] 1: expected a table, got 4"),
        (
            "[serve]\nsport = 4",
            "[serve] sport: unknown field; expected some of: "
            "host, port, db, players, matches, once, practice, open",
        ),
        (
            "[limits]\ndecision_ms = true",
            "[limits] decision_ms: expected an integer from 1 to 86400000, got true",
        ),
        (
            "[limits]\ndecision_ms = 4.0",
            "[limits] decision_ms: expected an integer from 1 to 86400000, got 4.0",
        ),
        (
            '[limits]\ndecision_ms = "4"',
            "[limits] decision_ms: expected an integer from 1 to 86400000, got '4'",
        ),
        (
            "[limits]\ndecision_ms = 0",
            "[limits] decision_ms: expected an integer from 1 to 86400000, got 0",
        ),
        (
            "[limits]\ntables = 5000",
            "[limits] tables: expected an integer from 1 to 4096, got 5000",
        ),
        (
            f"[limits]\ntables = {10**30}",
            f"[limits] tables: expected an integer from 1 to 4096, got {10**30}",
        ),
        (
            "[serve]\nport = 65536",
            "[serve] port: expected an integer from 0 to 65535, got 65536",
        ),
        ("[serve]\nonce = 1", "[serve] once: expected true or false, got 1"),
        (
            "[serve]\nhost = {}",
            "[serve] host: expected text that is not empty, got a table",
        ),
        ('[serve]\ndb = ""', "[serve] db: expected text that is not empty, got ''"),
        (
            "[serve]\nplayers = 1979-05-27",
            "[serve] players: expected an integer of at least 1, got 1979-05-27",
        ),
        (
            "[games.chess]",
            "[games.chess]: unknown game 'chess'; expected one of: "
            "ace_king_queen, gin_rummy, high_low, three_card_poker, blackjack",
        ),
        (
            "[games.akq]\nhand = 4",
            "[games.akq] hand: unknown field; expected some of: hands",
        ),
        (
            "[games.akq]\nhands = -1",
            "[games.akq] hands: expected an integer from 0 to 10000000, got -1",
        ),
        (
            "[games.gin]\nstarter = true",
            "[games.gin] starter: expected 0 or 1, got true",
        ),
        (
            '[games.blackjack]\nshuffle = "fair"',
            "[games.blackjack] shuffle: expected 'riffle' or 'uniform', got 'fair'",
        ),
        (
            "[games.akq]\n[games.ace_king_queen]",
            "[games.ace_king_queen]: the settings of ace_king_queen are given twice",
        ),
        ("[[bot]]", "[[bot]] 1 command: expected text, got nothing"),
        (
            '[[bot]]\ncommand = "sh"\n[[bot]]\ncommand = 4',
            "[[bot]] 2 command: expected text, got 4",
        ),
        (
            '[[bot]]\ncommand = "sh"\ncolour = "red"',
            "[[bot]] 1 colour: unknown field; expected some of: command, name, game",
        ),
        (
            '[[bot]]\ncommand = "sh"\nname = "a b"',
            "[[bot]] 1 name: expected a name of 1 to 64 letters, digits, - and _, got 'a b'",
        ),
        (
            '[[bot]]\ncommand = "sh"\ngame = "chess"',
            "[[bot]] 1 game: unknown game 'chess'; expected one of: "
            "ace_king_queen, gin_rummy, high_low, three_card_poker, blackjack",
        ),
        (
            "[[bot]]\ncommand = ''",
            "[[bot]] 1 command: expected a command line such as 'python3 bot.py', got ''",
        ),
    ],
)
def test_what_cannot_be_is_told_with_its_place(
    refusal: Callable[[str], str], text: str, said: str
) -> None:
    assert refusal(text) == said


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


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "class.toml"
    path.write_bytes(b'a = "\xff"')

    with pytest.raises(UsageError, match=r"class\.toml: expected TOML: 'utf-8'"):
        read_config(path)


@pytest.mark.parametrize(
    ("name", "why"), [("nowhere.toml", "No such file"), (".", "Is a directory")]
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"cannot be read: {why}"):
        read_config(tmp_path / name)


def test_the_settings_of_a_competition_must_go_together(
    refusal: Callable[[str], str],
) -> None:
    said = refusal("[games.tcp]\nstake = 1000000000000")

    assert said.startswith("[games.tcp]: settings of three_card_poker: ")
