"""The documents: code runs, frames are real, lists are complete, and links lead somewhere."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec
import pytest

from arena.cli import COMMANDS, command_named
from arena.competitions.config import read_config
from arena.games.catalogue import GAMES
from arena.games.shuffle import Stream, commitment, match_key
from arena.games.verdict import Finding, advice, out_of_time
from arena.sandbox.doctor import examine
from arena.sandbox.workdir import environment
from arena.storage.schema import COMPETITIONS, MATCHES, SEATS, VERDICTS
from bots.strategy import BaseStrategy
from protocol import messages
from protocol.codec import Encoding, decode_from_arena, decode_from_bot, encode
from protocol.errors import IllegalAnswer, Malformed, OutOfTurn, Oversize
from protocol.games import VOCABULARIES
from protocol.messages import (
    VERSION,
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    Ending,
    Goodbye,
    Hello,
    Limits,
    Match,
    Over,
    Past,
    Ready,
    Refused,
    Welcome,
)
from protocol.session import Session
from tests.support.arena_process import free_port
from tests.support.documents import (
    DOCUMENTS,
    PROTOCOL,
    ROOT,
    anchor,
    blocks,
    headings,
    section,
    without_blocks,
    words,
)
from tests.support.in_process import run_here
from tests.support.needs import skip_without
from tests.support.not_none import not_none

BIN = Path(sys.executable).parent  # not resolved: in a virtual environment it is a link
SETS_UP = "python3 -m venv"  # such a line makes an environment of its own
LINE_S = 300  # any one command; on a slow machine, beside other work

RUN_ELSEWHERE = "bots/examples/"  # by tests/e2e/test_examples.py, which builds them
NOTEBOOK = "arena/lab/python.md"  # its blocks of Python are one program, and show what it prints
NEXT_BLOCK = "\x1e"  # is printed between two of them

EACH_DOCUMENT = pytest.mark.parametrize("name", DOCUMENTS)
EACH_WITH_CODE = pytest.mark.parametrize(
    "name",
    [
        name
        for name, text in DOCUMENTS.items()
        if re.search("^```(sh|python)", text, re.M)
        and not name.startswith((RUN_ELSEWHERE, NOTEBOOK))
    ],
)
EACH_GAME = pytest.mark.parametrize("game", VOCABULARIES)

NAMED = ("past", "practice", "verdict", "others")
"""The blocks of frames that show something else than a game."""

EACH_TALK = pytest.mark.parametrize("name", [*VOCABULARIES, *NAMED])

Said = TypeVar("Said")


def commands(text: str) -> list[str]:
    """What there is to run, but for what makes an environment of its own."""
    return [line for line in text.splitlines() if SETS_UP not in line]


# ---- What they show is run


@EACH_DOCUMENT
def test_no_block_is_left_out(name: str) -> None:
    document = DOCUMENTS[name]

    assert len(blocks(document)) * 2 == document.count("```")
    assert {block.language.split()[0] for block in blocks(document)} <= {
        *("python", "sh", "text", "toml", "frames", "nginx", "ini", "dockerfile"),
        *("java", "js", "javascript", "cpp", "go", "bash"),
    }


@pytest.mark.e2e
@EACH_WITH_CODE
def test_the_code_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_the_arena_command()
    port = free_port()
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ARENA_PORT", str(port))
    monkeypatch.setenv("ARENA_URL", f"ws://127.0.0.1:{port}")
    for block in blocks(DOCUMENTS[name]):
        if block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
            if block.language == "python":
                compile(block.text, block.file, "exec")
        elif block.language == "python":
            run([sys.executable, "-"], tmp_path, block.text)
        elif block.language == "sh" and "one command per terminal" in block.before:
            assert block.text.startswith("arena serve")
            run_in_terminals(commands(block.text), tmp_path)
        elif block.language == "sh":
            for line in commands(block.text):
                shown = run_line(line, tmp_path)
                # The bots of the examples are honest ones.
                assert " is out " not in shown, shown


@pytest.mark.e2e
def test_the_notebook_prints_what_it_shows(tmp_path: Path) -> None:
    needs_the_arena_command()
    found = blocks(DOCUMENTS[NOTEBOOK])
    for block in found:
        if block.language == "sh":
            for line in commands(block.text):
                run_line(line, tmp_path)
    code = [block.text for block in found if block.language == "python"]
    program = "".join(f"print({NEXT_BLOCK!r}, end='')\n{each}" for each in code)
    _, *printed = run([sys.executable, "-W", "error", "-"], tmp_path, program).split(NEXT_BLOCK)
    shown = [
        after.text if after is not None and after.language == "text" else ""
        for block, after in zip(found, [*found[1:], None], strict=True)
        if block.language == "python"
    ]

    # pandas fills its columns with spaces.
    assert ["\n".join(map(str.rstrip, text.splitlines())) for text in printed] == [
        text.rstrip("\n") for text in shown
    ]


def needs_the_arena_command() -> None:
    if not shutil.which("arena", path=str(BIN)):
        assert not os.environ.get("CI"), f"no arena command in {BIN}"
        pytest.skip(f"no arena command in {BIN}: the package is not installed")


def run_line(line: str, folder: Path) -> str:
    """What a line prints; `arena` runs in this process, but where only a shell can read the line."""
    found = re.fullmatch(r"(?:cd (\S+) && )?arena (?!connect )([^|;&<]*)", line)
    if found is None:
        if re.search(r"\bbash\b", line):
            skip_without("bash", "jq")  # which the starter in Bash reads JSON with
        return run(["sh", "-c", line], folder)
    inner, command = found.groups()
    words = shlex.split(command.partition(" > ")[0])
    with contextlib.chdir(folder / (inner or "")):
        ran = run_here(*words)
        if target := command.partition(" > ")[2]:
            Path(target).write_text(ran.out, encoding="utf-8")

    assert ran.status == 0, f"{line}\n{ran.out}\n{ran.err}"
    return ran.out


def run(command: list[str], folder: Path, said: str = "") -> str:
    """What a program prints; it must succeed."""
    done = subprocess.run(
        command, cwd=folder, input=said, capture_output=True, text=True, timeout=LINE_S, check=False
    )

    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_in_terminals(lines: list[str], folder: Path) -> None:
    """Start a server, then all its bots; it must end by itself and name every one of them."""
    with ExitStack() as stack:
        server = stack.enter_context(started(lines[0], folder))
        assert server.stderr is not None, "it is a pipe"
        first = server.stderr.readline()
        assert b"arena at" in first, first + server.stderr.read()
        bots = [stack.enter_context(started(line, folder)) for line in lines[1:]]
        shown, said = server.communicate(timeout=LINE_S)
        assert server.returncode == 0, said.decode()
        for line, bot in zip(lines[1:], bots, strict=True):
            _, told = bot.communicate(timeout=LINE_S)
            assert bot.returncode == 0, f"{line}\n{told.decode()}"
            assert name_in(line) in shown.decode()


@contextmanager
def started(line: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a terminal of its own, which is closed at the end."""
    with subprocess.Popen(
        ["sh", "-c", line],
        cwd=folder,
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
    return re.findall(rf"^{SETS_UP}.*$", DOCUMENTS["README.md"], re.MULTILINE)


def test_there_are_two_lines_that_set_it_up() -> None:
    assert [line.rpartition("&& ")[2] for line in setup_lines()] == [
        ".venv/bin/arena demo",
        ".venv/bin/python -m pytest -n 4",
    ]


def test_ci_runs_the_line_that_runs_the_tests() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    pattern = not_none(re.search(r"^command=\$\(grep -E '(.+)' README\.md\)$", ci, re.MULTILINE))

    assert 'eval "$command"' in ci
    assert re.findall(pattern[1], DOCUMENTS["README.md"], re.MULTILINE) == [setup_lines()[1]]


# ---- The frames


class DecodedBlock(NamedTuple):
    """The decoded frames of a block, sent and received; None is where it lost its memory."""

    game: str
    said: list[BotMessage | ArenaMessage | None]

    def those(self, kind: type[Said]) -> list[Said]:
        """The messages of one kind, in order."""
        return [message for message in self.said if isinstance(message, kind)]


@functools.cache
def recorded(name: str | None = None) -> tuple[DecodedBlock, ...]:
    """All blocks of frames of a game, or the one of that name, if they parse."""
    found = []
    for block in blocks(PROTOCOL):
        tag, *rest = block.language.split()
        if tag == "frames" and rest[1:] == ([] if name is None else [name]):
            talk = DecodedBlock(rest[0], [])
            for line in block.text.splitlines():
                side, _, frame = line.partition(" ")
                talk.said.append(heard(talk.game, side, frame.strip()))
            found.append(talk)
    return tuple(found)


def heard(game: str, side: str, frame: str) -> BotMessage | ArenaMessage | None:
    message: BotMessage | ArenaMessage
    if side == "bot>":
        [message] = decode_from_bot(frame.encode(), Encoding.JSON)
        return message
    if side == "--":
        return None
    assert side == "arena>"
    [message] = decode_from_arena(frame.encode(), Encoding.JSON, lambda match: game)
    assert json.loads(encode(message, Encoding.JSON)) == json.loads(frame)
    return message


@functools.cache
def all_recorded() -> dict[str, DecodedBlock]:
    """Every block of frames, by its game and name."""
    named = {name: talk for name in NAMED for talk in recorded(name)}
    return {talk.game: talk for talk in recorded()} | named


def conversation(game: str) -> DecodedBlock:
    """The whole conversation on the page of a game."""
    [talk] = [talk for talk in recorded() if talk.game == game]
    return talk


@EACH_GAME
def test_there_are_frames_of_every_game_on_its_page(game: str) -> None:
    assert f"\n```frames {game}\n" in DOCUMENTS[f"protocol/{game}.md"]


def test_no_frames_are_left_out() -> None:
    shown = [block for block in blocks(PROTOCOL) if block.language.startswith("frames ")]

    assert len(all_recorded()) == len(shown)


@EACH_TALK
def test_every_answer_is_legal(name: str) -> None:
    talk = all_recorded()[name]
    asked = {ask.ask: ask for ask in talk.those(Ask)}
    illegal = []
    for answer in talk.those(Answer):
        try:
            asked[answer.ask].question.check(answer.value)
        except IllegalAnswer as error:
            illegal.append(str(error))

    assert {answer.ask for answer in talk.those(Answer)} == set(asked)
    if name == "practice":
        assert illegal == [refused.text for refused in talk.those(Refused)]
    elif name == "verdict":
        [over] = talk.those(Over)
        assert [f"seat 1 {error}" for error in illegal] == [over.termination.text]
    else:
        assert not illegal


@EACH_TALK
def test_everything_is_said_when_it_may_be(name: str) -> None:
    talk = all_recorded()[name]
    arena = begun(talk)
    bot = begun(talk)
    for message in talk.said:
        if message is None:
            arena.disconnected()
            bot = Session()
        else:
            # An invitation that comes twice is answered twice; all else matters.
            arena_counts, bot_counts = arena.note(message), bot.note(message)
            assert arena_counts or isinstance(message, Ready), message
            assert bot_counts or isinstance(message, Ready), message


def begun(talk: DecodedBlock) -> Session:
    """A session as it stands where the frames begin."""
    session = Session()
    first = talk.said[0]
    if not isinstance(first, Hello):
        assert isinstance(first, Ask | Over)
        session.note(Hello(VERSION, "ann", (talk.game,)))
        session.note(Welcome(VERSION, "ann", "", Limits()))
        session.note(Match(first.match, talk.game, 0, (), {}, Limits(), ""))
        session.note(Ready(first.match, "ann was here"))
    return session


@EACH_GAME
def test_a_conversation_of_every_game_is_whole(game: str) -> None:
    talk = conversation(game)
    begin, *turns, end = [kinds_said(talk)[:4], *kinds_said(talk)[4:-1], talk.said[-1]]

    assert begin == ["Hello", "Welcome", "Match", "Ready"]
    assert turns == ["Ask", "Answer"] * len(talk.those(Ask))
    assert isinstance(end, Over)
    assert end.termination.kind is Ending.COMPLETED


def test_who_has_lost_its_memory_hears_everything_again() -> None:
    [talk] = recorded("past")
    breach = talk.said.index(None)
    before = DecodedBlock(talk.game, talk.said[:breach])
    after = DecodedBlock(talk.game, talk.said[breach + 1 :])
    [hello] = after.those(Hello)
    [past] = after.those(Past)
    first, waiting = before.those(Ask)

    assert kinds_said(after) == [
        *("Hello", "Welcome", "Match", "Ready", "Past", "Match", "Ready"),
        *("Ask", "Answer", "Over"),
    ]
    assert hello.resume
    assert hello.from_ == 0
    assert (past.ask, past.question, past.news) == (first.ask, first.question, first.news)
    assert [past.answer] == [answer.value for answer in before.those(Answer)]
    assert after.those(Ask) == [waiting]


def test_in_practice_the_question_stands() -> None:
    [talk] = recorded("practice")
    [ask] = talk.those(Ask)
    [refused] = talk.those(Refused)

    assert kinds_said(talk) == ["Ask", "Answer", "Refused", "Answer", "Over"]
    assert (refused.code, refused.match) == ("illegal", ask.match)
    assert refused.ask == ask.ask
    assert refused.legal == json.loads(msgspec.json.encode(ask.question.choices))


def test_the_verdict_is_what_the_arena_says() -> None:
    [talk] = recorded("verdict")
    [ask] = talk.those(Ask)
    [over] = talk.those(Over)
    verdict = not_none(over.verdict)
    assert verdict.got is not None
    said = ask.question.advice(json.loads(verdict.got))
    finding = Finding(
        kind=verdict.kind, text=verdict.text, mechanism=verdict.mechanism, advice=said
    )

    assert verdict.limits == Limits()
    assert verdict.advice == advice(finding, verdict.limits)
    assert verdict.asked == msgspec.json.encode(ask.question).decode()
    assert verdict.legal == ask.question.legal_text()
    assert verdict.text == over.termination.text
    assert (verdict.kind, verdict.seat) == (over.termination.kind, over.termination.seat)


def test_the_others_learn_the_word_only() -> None:
    [mine] = recorded("verdict")[0].those(Over)
    [theirs] = recorded("others")[0].those(Over)

    assert theirs.termination == msgspec.structs.replace(mine.termination, text="")
    assert theirs.verdict is None
    assert (theirs.scores, theirs.reveal) == (mine.scores, mine.reveal)


def test_the_texts_of_lateness_are_those_of_the_arena() -> None:
    assert f"\n{out_of_time(2_140, 2_000, 12, 0)}\n" in PROTOCOL
    assert f"\n{out_of_time(5_003, 5_000, 0, 5_997, 'CPU')}\n" in PROTOCOL


def kinds_said(talk: DecodedBlock) -> list[str]:
    return [type(message).__name__ for message in talk.said]


def revealed(talk: DecodedBlock) -> tuple[bytes, bytes]:
    """The seed of a match that was recorded to its end, and the key of its stream."""
    over = talk.those(Over)[-1]
    assert over.reveal is not None
    seed = bytes.fromhex(over.reveal.seed)
    return seed, match_key(seed, over.reveal.nonces)


def news(talk: DecodedBlock, kind: str) -> list[Any]:
    """News that were heard, in order; what is told again is left out."""
    found = []
    for message in talk.said:
        if isinstance(message, Ask | Over):
            found += [told for told in message.news if told.kind == kind]
    return [told for number, told in enumerate(found) if told not in found[:number]]


@pytest.mark.parametrize("name", ["ace_king_queen", "past", "practice"])
def test_the_cards_of_the_conversation_come_from_its_seed(name: str) -> None:
    conversation = all_recorded()[name]
    seed, key = revealed(conversation)
    hands = [hand.cards for hand in news(conversation, "hand_over")]
    decks = islice(deals("ace_king_queen", key), len(hands))

    assert hands == [tuple(deck[:2]) for deck in decks]
    for match in conversation.those(Match):
        assert match.commitment == commitment(seed)


def test_the_cards_of_the_gin_match_come_from_its_seed() -> None:
    gin = conversation("gin_rummy")
    drawn = next(deals("gin_rummy", revealed(gin)[1]))
    [dealt] = news(gin, "dealt")

    assert dealt.starter == drawn.starter
    assert dealt.hand == tuple(drawn.deck[:10])
    assert dealt.upcard == drawn.deck[20]


def test_goodbye_in_msgpack() -> None:
    frame = encode(Goodbye(), Encoding.MSGPACK)
    shown = [word.replace(" ", "") for word in words(PROTOCOL) if word.startswith("81 a4 74797")]

    assert shown == [frame.hex()]


# ---- The vectors


def deals(game: str, key: bytes, **settings: object) -> Iterator[Any]:
    vocabulary = GAMES[game].vocabulary
    return GAMES[game].deals(vocabulary.read_settings(settings), Stream(key))


def vectors() -> dict[str, str]:
    key = revealed(conversation("ace_king_queen"))[1]
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
    [block] = [block for block in blocks(PROTOCOL) if block.text.startswith("key ")]
    shown = dict(re.split(r"  +", line) for line in block.text.splitlines())

    assert shown == vectors()


# ---- What they list is complete


def generated(what: str, document: str) -> str:
    """What the generator of `protocol/schema` has written; another test finds stale parts."""
    [text] = re.findall(rf"^<!-- generated: {what} -->\n(.*?)^<!-- end -->$", document, re.M | re.S)
    return str(text)


def fields_told(table: str) -> dict[str, list[str]]:
    """The fields in a table of questions, news or messages, by their owner; no parts."""
    found: dict[str, list[str]] = {}
    for first, field in re.findall(r"^\| (?:`(\w+)` )?\| (?:`(\w+)` )?\|", table, re.M):
        if first:
            found[first] = []
        elif field:
            found[[*found][-1]].append(field)
    return found


@EACH_GAME
def test_every_word_of_a_game_is_explained(game: str) -> None:
    page = DOCUMENTS[f"protocol/{game}.md"]
    vocabulary = VOCABULARIES[game]
    told = words(page)

    for what, kinds in (("questions", vocabulary.questions), ("news", vocabulary.news)):
        assert fields_told(generated(f"{what} {game}", page)) == {
            kind: [*cls.__struct_fields__] for kind, cls in kinds.items()
        }
    for field in msgspec.structs.fields(vocabulary.settings):
        default = msgspec.json.encode(field.default).decode()
        assert re.search(rf"^\| `{field.name}` \| `?{default}`? \|", page, re.M)
    for choice in choices(game):
        assert choice in told or json.dumps(choice) in page


def choices(game: str) -> Iterator[str]:
    """The words that may be answered, or that news choose from."""
    module = import_module(f"protocol.{game}")
    for name, value in vars(module).items():
        if name[0].isupper() and name not in ("Category", "Card"):
            yield from (word for word in get_args(value) if isinstance(word, str))


def test_every_code_of_refused_is_there() -> None:
    table = section("What goes wrong")
    head, *rows = re.findall(r"^\| .+ \| `(\w+)` \| .+ \|$", table, re.MULTILINE)
    codes = said_in_sources(r"(?:Unwelcome|Refused)\(\s*\"(\w+)\"")

    assert {"illegal", "token"} <= codes
    assert head == "refused"
    assert {*rows} == codes | {Malformed.code, Oversize.code, OutOfTurn.code}


def said_in_sources(pattern: str) -> set[str]:
    """What the arena says to bots in such a place; what the page says is in its own manual."""
    return {
        said
        for package in ("referee", "server")
        for file in (ROOT / "arena" / package).rglob("*.py")
        for said in re.findall(pattern, file.read_text())
    }


def test_every_variable_that_a_launched_bot_finds_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    told = words(section("Bots that the arena starts"))
    for name in ("LANG", "LANGUAGE", "JAVA_HOME", "TZ", "ARENA_PORT", "SECRET"):
        monkeypatch.setenv(name, "x")
    theirs = environment("ann", Path(), "ws://127.0.0.1:1", "a token")
    system = "SYSTEMROOT SYSTEMDRIVE COMSPEC PATHEXT NUMBER_OF_PROCESSORS".split()

    shown = {name for name in theirs if not name.startswith("LC_")} - {*system}
    assert shown <= told
    assert {"ARENA_URL", "ARENA_TOKEN", "ARENA_NAME"} < shown


def test_every_ending_and_close_code_is_there() -> None:
    table = section("What goes wrong")
    codes = {value for name, value in vars(messages).items() if name.startswith("CLOSE_")}

    assert {ending.value for ending in Ending} <= words(table)
    for code in codes:
        assert f"\n| {code} | " in table


def test_every_field_of_a_record_is_there() -> None:
    record = section("The record of a match")
    fields = import_module("arena.games.match").Record.__struct_fields__

    assert {*fields} <= words(record)


@EACH_GAME
def test_every_method_of_a_strategy_is_there_as_it_is(game: str) -> None:
    strategy = import_module(f"bots.{game}").PlayerStrategy
    methods = section(game, "bots/")
    signatures = {
        f"{name}({', '.join(inspect.signature(method).parameters)})"
        for name, method in inspect.getmembers(strategy, inspect.isfunction)
        if not name.startswith("_") and not hasattr(BaseStrategy, name)
    }
    rows = re.findall(r"^\| `(\w+\([^`]*\))` \|", methods, re.MULTILINE)

    assert set(rows) == signatures


def test_every_command_is_there() -> None:
    manual = DOCUMENTS["arena/cli/commands.md"]

    for command in COMMANDS:
        assert f"\n| `arena {command}" in manual


def test_bots_are_launched_by_the_commands_that_are_said_to() -> None:
    manual = DOCUMENTS["arena/cli/commands.md"]
    [line] = re.findall(r"^(.+) take `--bot COMMAND` as well", manual, re.MULTILINE)

    for name in COMMANDS:
        command = command_named(name)
        options = {option for param in command.params for option in param.opts}
        assert ("--bot" in options) == (name in words(line) | {"serve"}), name


def test_every_layer_of_the_doctor_is_there() -> None:
    manual = DOCUMENTS["arena/sandbox/launched_bots.md"]

    assert {layer.name for layer in examine().layers} <= words(manual)


def test_every_table_of_the_database_is_there() -> None:
    manual = DOCUMENTS["arena/storage/database.md"]

    for table in (COMPETITIONS, MATCHES, SEATS, VERDICTS):
        assert f"\n| `{table.name}` | " in manual


def test_every_package_of_the_arena_has_its_place() -> None:
    [graph] = [
        block.text
        for block in blocks(DOCUMENTS["CONTRIBUTING.md"])
        if block.text.startswith("cli ")
    ]
    packages = {file.parent.name for file in (ROOT / "arena").glob("*/__init__.py")}

    assert packages <= {*graph.split()}


def test_every_page_of_the_arena_is_linked_from_the_first() -> None:
    first = DOCUMENTS["arena/README.md"]
    pages = {name for name in DOCUMENTS if name.startswith("arena/")}

    linked = {f"arena/{path}" for path in re.findall(r"\]\(([^)#]+)\)", first)}
    assert pages - {"arena/README.md", "arena/web/page/lib/LICENSES.md"} <= linked


def test_the_settings_that_are_shown_can_be_read(tmp_path: Path) -> None:
    [block] = [
        block
        for block in blocks(DOCUMENTS["arena/competitions/configuration.md"])
        if block.language == "toml"
    ]
    file = tmp_path / "class.toml"
    file.write_text(block.text, encoding="utf-8")
    config = read_config(file)

    assert config.limits != Limits()
    assert config.games
    assert config.bots


def test_what_is_to_be_changed_is_where_it_is_said_to_be() -> None:
    rows = re.findall(r"^\| .+ \| (.+) \|$", section("Where to change what"), re.MULTILINE)

    assert len(rows) > 2
    for row in rows:
        sources = "".join(
            file.read_text()
            for path in words(row)
            if "/" in path
            for file in ([ROOT / path] if path[-1] != "/" else (ROOT / path).rglob("*.py"))
        )
        for name in filter(str.isidentifier, words(row)):
            assert re.search(rf"\b{name}\b", sources), row


def test_every_link_leads_somewhere() -> None:
    links = [
        (name, link)
        for name, text in DOCUMENTS.items()
        for link in re.findall(r"\]\(([^)\s]+)\)", without_blocks(text))
        if not link.startswith("https://")
    ]

    assert len(links) > 100
    assert [each for each in links if not leads_somewhere(*each)] == []


def leads_somewhere(name: str, link: str) -> bool:
    path, _, target = link.partition("#")
    there = (ROOT / name).parent / path if path else ROOT / name
    if not target:
        return there.exists()
    document = there.resolve().relative_to(ROOT).as_posix()
    return [*map(anchor, headings(DOCUMENTS.get(document, "")))].count(target) == 1


def test_every_path_that_is_named_exists() -> None:
    paths = {
        (name, word)
        for name, text in DOCUMENTS.items()
        for word in words(text)
        if re.fullmatch(r"(arena|bots|protocol|tests)/[\w/<>.]*", word)
    }
    files = {
        (name, ROOT / path.replace("<game>", game).replace("GAME", game))
        for name, path in paths
        for game in GAMES
    }

    assert len(paths) > 100
    assert [each for each in files if not each[1].exists()] == []
