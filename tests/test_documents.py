"""The four READMEs: the code that they show runs, the frames are real, and nothing that they list is missing."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import pytest

from arena.chance import Stream, commitment, match_key
from arena.cli import COMMANDS
from arena.database import COMPETITIONS, MATCHES, SEATS, VERDICTS
from arena.games import GAMES
from bots.strategy import BaseStrategy
from protocol import messages
from protocol.codec import Encoding, decode_from_arena, decode_from_bot, encode
from protocol.games import VOCABULARIES
from protocol.messages import (
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    Ending,
    Goodbye,
    Limits,
    Match,
    Over,
)
from protocol.strategy import house_bots

ROOT = Path(__file__).parent.parent
READMES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in (
        "README.md",
        "protocol/README.md",
        "bots/README.md",
        "arena/README.md",
    )
}
WIRE = READMES["protocol/README.md"]
BIN = Path(sys.executable).parent  # not resolved: in a virtual environment it is a link
SETS_UP = "python3 -m venv"  # such a line makes an environment of its own
LINE_S = 300  # any one command; on a slow machine, beside other work

EACH_README = pytest.mark.parametrize("name", READMES)
EACH_GAME = pytest.mark.parametrize("game", VOCABULARIES)


class Block(NamedTuple):
    """A block of code, and the paragraph before it."""

    before: str
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """Where the reader was told to save it."""
        told = re.search(r"Save this as `(\w+\.py)`", self.before)
        return told[1] if told else None

    @property
    def lines(self) -> list[str]:
        """What there is to run, but for what makes an environment of its own."""
        return [line for line in self.text.splitlines() if SETS_UP not in line]


def blocks(document: str) -> list[Block]:
    found = re.findall(
        r"([^\n]*)\n\n```([^\n]+)\n(.*?)^```$", document, re.DOTALL | re.MULTILINE
    )
    return [Block(*parts) for parts in found]


def sections(document: str) -> dict[str, str]:
    """What stands under each heading of the third level."""
    parts = re.split(r"^### (.+)$|^## .+$", document, flags=re.MULTILINE)
    return {
        heading: body
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
        if heading
    }


def words(text: str) -> set[str]:
    """Everything in it that is set as code."""
    return set(re.findall(r"`([^`\n]+)`", text))


# ---- What they show is run


@EACH_README
def test_no_block_is_left_out(name: str) -> None:
    document = READMES[name]

    assert len(blocks(document)) * 2 == document.count("```")
    assert {block.language.split()[0] for block in blocks(document)} <= {
        *("python", "sh", "text", "toml", "frames"),
    }


@pytest.mark.e2e
@EACH_README
def test_the_code_runs(name: str, tmp_path: Path) -> None:
    needs_the_arena_command()
    with free_port() as port:
        environment = os.environ | {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "ARENA_PORT": str(port),
            "ARENA_URL": f"ws://127.0.0.1:{port}",
        }
    for block in blocks(READMES[name]):
        if block.language == "python" and block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
            compile(block.text, block.file, "exec")
        elif block.language == "python":
            run([sys.executable, "-"], tmp_path, environment, block.text)
        elif block.language == "sh" and block.text.startswith("arena serve"):
            assert "one command per terminal" in block.before
            run_in_terminals(block.lines, tmp_path, environment)
        elif block.language == "sh":
            for line in block.lines:
                run(["sh", "-c", line], tmp_path, environment)


def needs_the_arena_command() -> None:
    if not shutil.which("arena", path=str(BIN)):
        assert not os.environ.get("CI"), f"no arena command in {BIN}"
        pytest.skip(f"no arena command in {BIN}: the package is not installed")


@contextmanager
def free_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def run(
    command: list[str], folder: Path, environment: dict[str, str], said: str = ""
) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        timeout=LINE_S,
        check=False,
    )

    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_in_terminals(
    lines: list[str], folder: Path, environment: dict[str, str]
) -> None:
    """Start a server and, when it listens, all its bots; it must end by itself and name every one of them."""
    with ExitStack() as stack:
        server = stack.enter_context(started(lines[0], folder, environment))
        assert server.stderr is not None, "it is a pipe"
        first = server.stderr.readline()
        assert b"arena at" in first, first + server.stderr.read()
        bots = [
            stack.enter_context(started(line, folder, environment))
            for line in lines[1:]
        ]
        shown, said = server.communicate(timeout=LINE_S)
        assert server.returncode == 0, said.decode()
        for line, bot in zip(lines[1:], bots, strict=True):
            _, told = bot.communicate(timeout=LINE_S)
            assert bot.returncode == 0, f"{line}\n{told.decode()}"
            assert name_in(line) in shown.decode()


@contextmanager
def started(
    line: str, folder: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a terminal of its own, which is closed at the end."""
    with subprocess.Popen(
        ["sh", "-c", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # so that `readline` takes no more than its line from `communicate`
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def name_in(line: str) -> str:
    """What the bot that a line connects is called: as it says, or its last word."""
    told = re.search(r"--name (\S+)", line)
    return told[1] if told else line.split()[-1]


# ---- How to set it up


def setup_lines() -> list[str]:
    return re.findall(rf"^{SETS_UP}.*$", READMES["README.md"], re.MULTILINE)


def test_there_are_two_lines_that_set_it_up() -> None:
    assert [line.rpartition("&& ")[2] for line in setup_lines()] == [
        ".venv/bin/arena demo",
        ".venv/bin/python -m pytest",
    ]


def test_ci_runs_the_line_that_runs_the_tests() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    pattern = re.search(r"^command=\$\(grep -E '(.+)' README\.md\)$", ci, re.MULTILINE)

    assert pattern is not None
    assert 'eval "$command"' in ci
    assert re.findall(pattern[1], READMES["README.md"], re.MULTILINE) == [
        setup_lines()[1]
    ]


@pytest.mark.e2e
def test_the_demo_can_be_set_up_in_a_bare_checkout(tmp_path: Path) -> None:
    copy_checkout(tmp_path)
    done = subprocess.run(
        setup_lines()[0],
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=3 * LINE_S,
        check=False,
    )
    if done.returncode and "Retrying (Retry(" in done.stdout + done.stderr:
        assert not os.environ.get("CI"), done.stderr
        pytest.skip("no network for pip")

    assert done.returncode == 0, done.stdout + done.stderr
    for game in GAMES.values():
        assert game.vocabulary.title in done.stdout
    for kind in (Ending.ILLEGAL, Ending.CRASH, Ending.TIMEOUT):
        assert kind.value in done.stdout


def copy_checkout(folder: Path) -> None:
    """All files of this checkout that are not ignored, and nothing else."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        assert not os.environ.get("CI"), "no checkout to copy"
        pytest.skip("no checkout to copy")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for file in filter(None, listed.stdout.split("\0")):
        if (ROOT / file).is_file():  # else it has just been removed
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file)


# ---- The frames


class Recorded(NamedTuple):
    """The frames of a block, decoded: those that a bot sent and those that it got."""

    game: str
    sent: list[BotMessage]
    got: list[ArenaMessage]


def recorded() -> list[Recorded]:
    """All blocks of frames; each must parse to what it was encoded from."""
    found = []
    for block in blocks(WIRE):
        if block.language.startswith("frames "):
            talk = Recorded(block.language.split()[1], [], [])
            for line in block.text.splitlines():
                side, frame = line.split(maxsplit=1)
                hear(talk, side, frame)
            found.append(talk)
    return found


def hear(talk: Recorded, side: str, frame: str) -> None:
    message: BotMessage | ArenaMessage
    if side == "bot>":
        [message] = decode_from_bot(frame.encode(), Encoding.JSON)
        talk.sent.append(message)
    else:
        assert side == "arena>"
        [message] = decode_from_arena(
            frame.encode(), Encoding.JSON, lambda match: talk.game
        )
        talk.got.append(message)
        assert json.loads(encode(message, Encoding.JSON)) == json.loads(frame)


def test_there_are_frames_of_every_game() -> None:
    assert [talk.game for talk in recorded()] == list(VOCABULARIES)


def test_every_answer_is_legal() -> None:
    for talk in recorded():
        asked = {ask.ask: ask for ask in talk.got if isinstance(ask, Ask)}
        answers = [answer for answer in talk.sent if isinstance(answer, Answer)]

        assert [answer.ask for answer in answers] == list(asked)
        for answer in answers:
            asked[answer.ask].question.check(answer.value)


def test_the_conversation_is_whole() -> None:
    conversation = recorded()[0]

    assert [type(message).__name__ for message in conversation.got] == [
        *("Welcome", "Match", "Ask", "Ask", "Over"),
    ]
    assert [type(message).__name__ for message in conversation.sent] == [
        *("Hello", "Ready", "Answer", "Answer"),
    ]


def revealed(talk: Recorded) -> tuple[bytes, bytes]:
    """The seed of a match that was recorded to its end, and the key of its stream."""
    over = talk.got[-1]
    assert isinstance(over, Over)
    assert over.reveal is not None
    seed = bytes.fromhex(over.reveal.seed)
    return seed, match_key(seed, over.reveal.nonces)


def news(talk: Recorded, kind: str) -> list[Any]:
    return [
        told
        for message in talk.got
        if isinstance(message, Ask | Over)
        for told in message.news
        if told.kind == kind
    ]


def test_the_cards_of_the_conversation_come_from_its_seed() -> None:
    conversation = recorded()[0]
    match = conversation.got[1]
    assert isinstance(match, Match)
    seed, key = revealed(conversation)
    decks = deals("ace_king_queen", key)

    assert match.commitment == commitment(seed)
    hands = [hand.cards for hand in news(conversation, "hand_over")]
    assert hands == [tuple(deck[:2]) for deck in islice(decks, 2)]


def test_the_cards_of_the_gin_match_come_from_its_seed() -> None:
    gin = recorded()[1]
    drawn = next(deals("gin_rummy", revealed(gin)[1]))
    [dealt] = news(gin, "dealt")

    assert dealt.starter == drawn.starter
    assert dealt.hand == tuple(drawn.deck[:10])
    assert dealt.upcard == drawn.deck[20]


def test_goodbye_in_msgpack() -> None:
    frame = encode(Goodbye(), Encoding.MSGPACK)
    shown = [
        word.replace(" ", "") for word in words(WIRE) if word.startswith("81 a4 74797")
    ]

    assert shown == [frame.hex()]


# ---- The vectors


def deals(game: str, key: bytes, **settings: object) -> Iterator[Any]:
    vocabulary = GAMES[game].vocabulary
    return GAMES[game].deals(vocabulary.read_settings(settings), Stream(key))


def vectors() -> dict[str, str]:
    key = revealed(recorded()[0])[1]
    stream = Stream(key)
    hands = [" ".join(deck) for deck in islice(deals("ace_king_queen", key), 2)]
    gin = list(islice(deals("gin_rummy", key), 2))
    poker = [" ".join(deck) for deck in islice(deals("three_card_poker", key), 2)]
    cuts = islice(deals("blackjack", key), 14)
    uniform = next(deals("blackjack", key, shuffle="uniform"))
    return {
        "key": key.hex(),
        "first bytes of the stream": bytes(stream.below(256) for _ in range(32)).hex(),
        "ace_king_queen, hand 1": hands[0],
        "ace_king_queen, hand 2": hands[1],
        "gin_rummy, round 1": f"seat {gin[0].starter} starts; {some(gin[0].deck, 21)}",
        "gin_rummy, round 2": f"({gin[1].starter}) {some(gin[1].deck, 21)}",
        "high_low, shuffle 1": some(next(deals("high_low", key)), 15),
        "three_card_poker, round 1": poker[0],
        "three_card_poker, round 2": poker[1],
        "blackjack, riffle": " ".join(map(str, cuts)),
        "blackjack, uniform": some(uniform, 15),
    }


def some(deck: list[str], count: int) -> str:
    return f"{' '.join(deck[:count])} …"


def test_J6_the_vectors_are_those_of_the_conversation() -> None:
    [block] = [block for block in blocks(WIRE) if block.text.startswith("key ")]
    shown = dict(re.split(r"  +", line) for line in block.text.splitlines())

    assert shown == vectors()


# ---- What they list is complete


@EACH_GAME
def test_every_word_of_a_game_is_explained(game: str) -> None:
    section = sections(WIRE)[game]
    vocabulary = VOCABULARIES[game]
    told = words(section)

    for kind, cls in (*vocabulary.questions.items(), *vocabulary.news.items()):
        rows = [row for row in section.splitlines() if row.startswith(f"| `{kind}` |")]
        assert any(
            {*cls.__struct_fields__} - {"legal"} <= words(row) for row in rows
        ), (kind, cls.__struct_fields__)
    for field in msgspec.structs.fields(vocabulary.settings):
        default = msgspec.json.encode(field.default).decode()
        assert re.search(rf"^\| `{field.name}` \| `?{default}`? \|", section, re.M)
    for choice in choices(game):
        assert choice in told or json.dumps(choice) in section


def choices(game: str) -> Iterator[str]:
    """The words that may be answered, or that news choose from."""
    module = import_module(f"protocol.{game}")
    for name, value in vars(module).items():
        if name[0].isupper() and name not in ("Category", "Card"):
            yield from (word for word in get_args(value) if isinstance(word, str))


def test_every_message_and_field_is_explained() -> None:
    told = words(WIRE)

    for union in (BotMessage, ArenaMessage):
        for cls in get_args(union):
            fields = {*cls.__struct_encode_fields__} - {"question"}
            assert cls.__name__.lower() in told
            assert fields <= told, cls


def test_every_limit_is_there_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", WIRE, re.MULTILINE))

    for name, default in msgspec.structs.asdict(Limits()).items():
        assert rows[name] == str(default)


def test_every_ending_and_close_code_is_there() -> None:
    section = sections(WIRE)["What goes wrong"]
    codes = {
        value for name, value in vars(messages).items() if name.startswith("CLOSE_")
    }

    assert {ending.value for ending in Ending} <= words(section)
    for code in codes:
        assert f"\n| {code} | " in section


def test_every_field_of_a_record_is_there() -> None:
    record = WIRE.partition("## The record of a match")[2]
    fields = import_module("arena.match").Record.__struct_fields__

    assert {*fields} <= words(record)


@EACH_GAME
def test_every_method_of_a_strategy_is_there_as_it_is(game: str) -> None:
    strategy = import_module(f"bots.{game}").PlayerStrategy
    section = sections(READMES["bots/README.md"])[game]
    signatures = {
        f"{name}({', '.join(inspect.signature(method).parameters)})"
        for name, method in inspect.getmembers(strategy, inspect.isfunction)
        if not name.startswith("_") and not hasattr(BaseStrategy, name)
    }
    rows = re.findall(r"^\| `(\w+\([^`]*\))` \|", section, re.MULTILINE)

    assert set(rows) == signatures


def test_every_house_bot_is_there() -> None:
    table = READMES["bots/README.md"].partition("## The house bots")[2]
    rows = re.findall(r"^\| (\w*) ?\| `(\w+)` \| ", table, re.MULTILINE)
    shown: dict[str, set[str]] = {}
    game = ""
    for first, bot in rows:
        game = first or game
        shown.setdefault(game, set()).add(bot)
    ours = {
        game: {
            name
            for name, point in house_bots(game).items()
            if point.value.startswith("bots.")
        }
        for game in VOCABULARIES
    }

    assert shown == ours


def test_every_command_is_there() -> None:
    section = sections(READMES["arena/README.md"])["The commands"]

    for command in COMMANDS:
        assert f"\n| `arena {command}" in section


def test_every_table_of_the_database_is_there() -> None:
    section = sections(READMES["arena/README.md"])["The database"]

    for table in (COMPETITIONS, MATCHES, SEATS, VERDICTS):
        assert f"\n| `{table.name}` | " in section


@EACH_README
def test_every_path_that_is_named_exists(name: str) -> None:
    paths = {
        word
        for word in words(READMES[name])
        if re.fullmatch(r"(arena|bots|protocol|tests)/[\w/<>.]*", word)
    }

    for path in paths:
        for game in GAMES:
            assert (ROOT / path.replace("<game>", game)).exists(), path
