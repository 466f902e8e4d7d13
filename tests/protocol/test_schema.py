"""What is generated from the types: fresh, whole, and as exact as the codec wherever a schema can
be.

That every frame of all the tests fits the schemas is seen to by tests/support/frame_validation.py.
"""

from __future__ import annotations

import copy
import json
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from jsonschema_rs import Validator

from protocol import messages
from protocol.codec import Encoding, decode_from_arena, decode_from_bot, encode
from protocol.errors import Malformed, UsageError
from protocol.games import VOCABULARIES
from protocol.messages import ArenaMessage, BotMessage, Ending, Limits, Match, Refused
from protocol.schema import __main__ as command
from protocol.schema import generated
from protocol.schema.definitions import FROM_BOT, definitions, links, our_games
from protocol.schema.docstrings import of_class, of_constants
from protocol.schema.documents import FROM_ARENA, documents
from protocol.schema.tables import PARTS, fill_in
from tests.protocol.test_codec import JSON_VALUES, REFUSED, damaged
from tests.support import frame_validation
from tests.support.documents import PROTOCOL, ROOT
from tests.support.needs import skip_without, tool

TRANSCRIPTS = sorted((ROOT / "protocol/vectors/transcripts").glob("*.jsonl"))
GAMES = tuple(words.name for words in our_games())

EACH_GAME = pytest.mark.parametrize("game", GAMES)
EACH_FILE = pytest.mark.parametrize("name", [*documents(), "asyncapi.json"])

READY = {"type": "ready", "match": "m", "nonce": "n"}
ANSWER = {"type": "answer", "match": "m", "ask": "m:1", "value": 4}
HELLO = {"type": "hello", "protocol": 1, "name": "ann", "games": ["gin_rummy"]}


def held(name: str) -> dict[str, Any]:
    """A generated file."""
    schema: dict[str, Any] = json.loads((generated.SCHEMAS / name).read_text(encoding="utf-8"))
    return schema


@cache
def schema(name: str) -> Validator:
    skip_without("jsonschema_rs")
    import jsonschema_rs

    return jsonschema_rs.validator_for(held(f"{name}.json"))


def fits(name: str, said: object) -> bool:
    return schema(name).is_valid(said)


# ---- Fresh


def test_nothing_is_stale() -> None:
    assert not generated.stale(), "run `python -m protocol.schema`"


def test_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["protocol.schema", "--check"])
    monkeypatch.delitem(sys.modules, command.__name__)  # it is run, not imported
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("protocol.schema", run_name="__main__")

    assert ended.value.code == 0
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all that is generated, which the command takes for the real one."""
    copied = tmp_path / "protocol"
    shutil.copytree(ROOT / "protocol" / "schema", copied / "schema")
    shutil.copytree(ROOT / "protocol" / "vectors", copied / "vectors")
    for page in ROOT.glob("protocol/*.md"):
        shutil.copy2(page, copied)
    monkeypatch.setattr(generated, "SCHEMAS", copied / "schema")
    monkeypatch.setattr(generated, "_PAGES", copied)
    monkeypatch.setattr(generated, "_TRANSCRIPTS", copied / "vectors" / "transcripts")
    return copied


GENERATED = {
    *("messages bot", "messages arena", "messages instructor"),
    *("limits time", "limits space", "close codes", "endings", "verdict", "mechanisms"),
    *(f"{what} {game}" for game in GAMES for what in ("settings", "questions", "news")),
    *(f"transcript {game}-1" for game in GAMES),
}  # fmt: skip


def test_no_generated_part_has_gone() -> None:
    shown = {*re.findall("^<!-- generated: (.+) -->$", PROTOCOL, re.MULTILINE)}

    assert shown >= GENERATED
    assert {part.split()[0] for part in shown} == {*PARTS, "transcript"}


@pytest.mark.parametrize(
    "damaged", [b"\xff", b"<!-- end -->", b"<!-- generated: endings -->", None]
)
def test_a_page_that_cannot_be_filled_in_is_a_line(
    elsewhere: Path, capsys: pytest.CaptureFixture[str], damaged: bytes | None
) -> None:
    page = elsewhere / "page.md"
    if damaged is None:
        page.mkdir()
    else:
        page.write_bytes(damaged)

    assert command.main([]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("cannot generate: ")


def test_what_is_stale_is_named_and_then_written(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, extra, page = (
        elsewhere / place for place in ("schema/hello.json", "schema/old.json", "messages.md")
    )
    text = page.read_text(encoding="utf-8")
    file.unlink()
    extra.write_text("{}")
    page.write_text(text.replace("| 1012 |", "| 1013 |"), encoding="utf-8")

    assert command.main(["--check"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.split(";")[0] for line in said] == [
        f"stale: {path}" for path in (file, page, extra)
    ]
    assert command.main([]) == 0
    assert command.main(["--check"]) == 0
    assert not extra.exists()
    assert page.read_text(encoding="utf-8") == text
    assert file.read_text() == (generated.SCHEMAS / "hello.json").read_text()


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("poems gin_rummy", "expected a part that is one of: messages, "),
        ("settings bridge", "'settings' knows no 'bridge.settings'"),
        ("messages gods", "'messages' knows no 'gods'"),
        ("limits money", "'limits' knows no 'money'"),
        ("transcript", "expected `NAME [from TYPE] [as WORD]` after `transcript`, got ''"),
        ("transcript nobody-7", "expected a transcript 'nobody-7' in "),
        ("transcript ../../x", "expected the name of a transcript, got '../../x'"),
        ("transcript high_low-1 from", "expected `NAME [from TYPE] [as WORD]` after "),
        ("transcript high_low-1 to over", "expected `NAME [from TYPE] [as WORD]` after "),
        ("transcript high_low-1 from home", "expected a message of type 'home', got none"),
    ],
)
def test_a_part_that_there_is_not_is_told_in_one_line(
    part: str, said: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "page.md").write_text(f"<!-- generated: {part} -->\n<!-- end -->\n")

    assert command.main([]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize("text", [b"", b"no JSON", b"{}\n", b'{"game":"x"}\n{"bot":1'])
def test_what_is_no_transcript_is_not_shown_as_one(text: bytes) -> None:
    with pytest.raises(UsageError, match="expected a transcript: "):
        fill_in("<!-- generated: transcript x -->\n<!-- end -->\n", lambda name: text)


def test_a_part_without_an_end_is_none() -> None:
    with pytest.raises(UsageError, match="expected `<!-- end -->` after every"):
        fill_in("<!-- generated: endings -->\n\ntext\n", lambda name: b"")


def test_a_section_that_no_page_has_is_told() -> None:
    with pytest.raises(UsageError, match="expected a section 'What is legal' in a "):
        fill_in("<!-- generated: questions blackjack -->\n<!-- end -->\n", lambda name: b"")


def test_what_stands_around_a_part_is_left_alone() -> None:
    text = "before\n<!-- generated: endings -->\nwas here\n<!-- end -->\nafter\n"
    filled = fill_in(text, lambda name: b"")

    assert filled.startswith("before\n<!-- generated: endings -->\n\n| `kind` | ")
    assert filled.endswith("|\n\n<!-- end -->\nafter\n")
    assert "was here" not in filled
    assert fill_in(filled, lambda name: b"") == filled


def test_a_description_that_names_a_section_links_to_it() -> None:
    parts = re.findall(r"<!-- generated: .+? -->.*?<!-- end -->", PROTOCOL, re.DOTALL)
    links = {link for part in parts for link in re.findall(r"\]\(([^)]+)\)", part)}

    assert "time_and_space.md#time" in links
    assert "#verdicts" in links


# ---- Whole


def test_there_is_a_file_for_every_message_direction_and_game() -> None:
    said = {cls.__name__.lower() for union in (BotMessage, ArenaMessage) for cls in get_args(union)}

    assert {*FROM_BOT} == {cls.__name__.lower() for cls in get_args(BotMessage)}
    assert {*documents()} == {
        f"{name}.json" for name in (*said, *GAMES, "bot_to_arena", "arena_to_bot")
    }


@EACH_FILE
def test_a_file_is_whole_in_itself(name: str) -> None:
    document = held(name)
    needed = {*links(document)}

    assert needed <= {*document.get("$defs", ()), *components(document)}
    assert "protocol." not in json.dumps(document), "that would be a name of Python's"


def components(document: dict[str, Any]) -> Iterator[str]:
    """The names that an AsyncAPI document may refer to, as it writes them."""
    for kind, named in document.get("components", {}).items():
        yield from (f"#/components/{kind}/{name}" for name in named)
    for channel, about in document.get("channels", {}).items():
        yield f"#/channels/{channel}"
        for name in about["messages"]:
            yield f"#/channels/{channel}/messages/{name}"
    yield from (f"#/servers/{name}" for name in document.get("servers", ()))


@pytest.mark.parametrize("name", documents())
def test_a_file_is_a_json_schema(name: str) -> None:
    skip_without("jsonschema_rs")
    import jsonschema_rs

    assert jsonschema_rs.meta.is_valid(held(name))
    assert "4.0" in held(name)["description"]


def test_all_that_is_said_is_described() -> None:
    for name, about in definitions().items():
        assert about["description"], name
        for field, form in about.get("properties", {}).items():
            assert "description" in form or "const" in form, (name, field)


def test_every_ending_has_its_meaning() -> None:
    assert [word["const"] for word in definitions()["ending"]["oneOf"]] == [*Ending]


@EACH_GAME
def test_the_defaults_and_ranges_of_settings_are_those_of_the_types(game: str) -> None:
    fields = definitions()[f"{game}.settings"]["properties"]
    defaults = {name: form["default"] for name, form in fields.items()}

    assert defaults == msgspec.to_builtins(VOCABULARIES[game].settings())
    assert definitions()["limits"]["properties"]["tables"] | {"description": ""} == {
        "description": "",
        "type": "integer",
        "minimum": 1,
        "maximum": 4096,
        "default": Limits().tables,
    }


def test_close_codes_have_what_stands_beneath_them() -> None:
    said = of_constants(messages, "CLOSE_")
    codes = {value for name, value in vars(messages).items() if name.startswith("CLOSE_")}

    assert list(said) == sorted(codes)
    assert said[messages.CLOSE_RESTART].endswith("go on with it: reconnect.")


def test_what_is_not_described_is_an_error() -> None:
    class Mute(msgspec.Struct):
        pass

    class Half(msgspec.Struct):
        """Half.

        Attributes:
            one: the first, which goes on.
        """

        one: int
        two: int

    with pytest.raises(UsageError, match="expected a docstring in Mute"):
        of_class(Mute)
    assert of_class(Half).of("one") == "the first, which goes on."
    with pytest.raises(UsageError, match=r"expected a description of 'two' in 'Half\.'"):
        of_class(Half).of("two")


# ---- As exact as the codec


VALUES: list[Any] = [None, "bet", 1.5, [[[[4]]]], {"a": {}}]
START = {"type": "instruct", "protocol": 1, "token": "t", "action": "start"}
STRANGE: list[Any] = ["Zz", -1.5, True, [[]], {"min": "1"}]
BAD_SETTINGS: list[object] = [{"hands": [2]}, {"hands": {}}, [2]]
WRONG: list[Any] = [
    # The two things that a schema cannot say are left out.
    *[said for said, text in REFUSED if "printable" not in text and "got `float`" not in text],
    *({**READY, "nonce": "n" * 65}, {**HELLO, "tables": None}, {**HELLO, "from_": 0}),
    {"type": "instruct", "protocol": 1, "token": "t", "action": "explode"},
    *({**START, "settings": wrong} for wrong in BAD_SETTINGS),
    *({**START, "matches": 0}, {**START, "matches": "2"}, {**START, "form": ""}),
    {**START, "text": 4},
]
RIGHT: list[Any] = [
    READY,
    ANSWER,
    HELLO,
    {"type": "goodbye"},
    {**HELLO, "from": 0, "resume": "s", "token": None, "tables": 2**40, "client": ""},
    *({**ANSWER, "value": value} for value in VALUES),
    {"type": "instruct", "protocol": 1, "token": "t", "action": "void", "match": "m"},
    START,
    {**START, "form": "ladder", "matches": 2, "settings": {"hands": 2, "x": None}},
    {**START, "action": "import", "text": "name\nann\n"},
    {**START, "action": "log"},
    [],
    [READY, ANSWER],
]


@pytest.mark.parametrize("said", WRONG, ids=repr)
def test_what_the_arena_refuses_fits_no_schema(said: Any) -> None:
    with pytest.raises(Malformed):
        decode_from_bot(json.dumps(said).encode(), Encoding.JSON)
    assert not fits("bot_to_arena", said)


@pytest.mark.parametrize("said", RIGHT, ids=repr)
def test_what_the_arena_reads_fits(said: Any) -> None:
    decode_from_bot(json.dumps(said).encode(), Encoding.JSON)
    assert fits("bot_to_arena", said)
    if isinstance(said, dict):
        assert fits(said["type"], said)


@given(value=damaged(JSON_VALUES) | JSON_VALUES)
def test_whatever_bots_say_is_judged_alike(value: Any) -> None:
    frame = json.dumps(value).encode()
    try:
        decode_from_bot(frame, Encoding.JSON)
        refusal = ""
    except Malformed as error:
        refusal = str(error)

    if fits("bot_to_arena", value):
        # The two things that a schema cannot say.
        assert re.search("^$|got `float`|printable letters", refusal)
    else:
        assert refusal


def test_a_whole_number_with_a_fraction_is_what_schemas_cannot_refuse() -> None:
    with pytest.raises(Malformed):
        decode_from_bot(b'{"type":"hello","protocol":1.0,"name":"a","games":["x"]}', Encoding.JSON)
    assert fits("hello", {**HELLO, "protocol": 1.0})


@cache
def frames() -> list[dict[str, Any]]:
    """What the arena says in the conversations of the pages."""
    return [json.loads(line) for line in re.findall(r"^arena> (.+)$", PROTOCOL, re.MULTILINE)]


@pytest.mark.parametrize("kind", ["welcome", "match", "ask", "past", "over", "refused"])
def test_the_arena_says_every_field(kind: str) -> None:
    [said, *_] = (frame for frame in frames() if frame["type"] == kind)

    assert fits(kind, said)
    assert fits("arena_to_bot", [said])
    assert fits(kind, said | {"weather": "fine"}), "later versions may say more"
    for field in said:
        less = {name: value for name, value in said.items() if name != field}
        assert not fits(kind, less), field


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: str(file.stem))
def test_every_message_of_a_transcript_fits(file: Path) -> None:
    _, *lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    direction = {"arena": "arena_to_bot", "bot": "bot_to_arena"}

    for line in lines:
        for side, said in line.items():
            assert side == "event" or fits(direction[side], said), said


def asks() -> list[Any]:
    kinds = {(frame["kind"], *frame): frame for frame in frames() if frame["type"] == "ask"}
    return [pytest.param(ask, id=ask["kind"]) for ask in kinds.values()]


@pytest.mark.parametrize("ask", asks())
def test_an_ask_has_the_types_of_its_kind(ask: dict[str, Any]) -> None:
    assert fits("ask", ask)
    for field, value in ask.items():
        for wrong in STRANGE:
            if type(wrong) is not type(value) or isinstance(wrong, list | dict):
                told = copy.deepcopy(ask) | {field: wrong}
                assert not fits("ask", told), (field, wrong)


@EACH_GAME
def test_a_game_has_its_own_settings_and_seats(game: str) -> None:
    words = VOCABULARIES[game]
    settings = msgspec.to_builtins(words.settings())
    seats = ["a"] * words.seats
    said = msgspec.to_builtins(Match("m", game, 0, tuple(seats), settings, Limits(), "c"))
    other = GAMES[GAMES.index(game) - 1]

    assert fits(game, said)
    assert fits("match", said)
    assert not fits(game, said | {"seats": [*seats, "b"]})
    assert not fits(game, said | {"settings": {}})
    assert not fits(other, said)
    assert not fits("match", said | {"game": other})


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("gin_rummy.answer.turn", {"discard": "As"}, {"knock": True}),
        ("gin_rummy.answer.turn", {"discard": "As", "melds": [["2s"]]}, {"discard": "1s"}),
        ("gin_rummy.answer.melds", None, [["1s"]]),
        ("high_low.answer.bid", 10, 3),
        ("high_low.answer.bid", "quit", "2"),
        ("blackjack.answer.bet", 5, "5"),
        ("ace_king_queen.answer.open", "bet", "call"),
    ],
)
def test_an_answer_may_be_what_its_question_takes(name: str, right: object, wrong: object) -> None:
    skip_without("jsonschema_rs")
    import jsonschema_rs

    document = held(f"{name.partition('.')[0]}.json")
    answer = jsonschema_rs.validator_for({"$ref": f"#/$defs/{name}", "$defs": document["$defs"]})

    assert answer.is_valid(right)
    assert not answer.is_valid(wrong)


# ---- AsyncAPI


def test_every_message_is_sent_or_received_by_a_bot() -> None:
    document = held("asyncapi.json")
    operations = document["operations"].values()
    said = {
        action: [
            operation["messages"][0]["$ref"].rpartition("/")[2]
            for operation in operations
            if operation["action"] == action
        ]
        for action in ("send", "receive")
    }

    assert said == {"send": [*FROM_BOT], "receive": [*FROM_ARENA]}
    assert {*document["components"]["messages"]} == {*FROM_BOT, *FROM_ARENA}


def test_its_payloads_take_and_refuse_what_the_files_do() -> None:
    skip_without("jsonschema_rs")
    import jsonschema_rs

    document = held("asyncapi.json")
    own = {
        name: jsonschema_rs.Draft7Validator(
            {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        )
        for name in (*FROM_BOT, *FROM_ARENA)
    }
    for said in frames():
        kind = said["type"]
        assert own[kind].is_valid(said)
        for field in said.keys() - {"type"}:
            told = said | {field: [["?"]]}
            assert own[kind].is_valid(told) == fits(kind, told), (kind, field)
    for rows, is_right in ((WRONG, False), (RIGHT, True)):
        for row in rows:
            if isinstance(row, dict) and row.get("type") in own:
                assert own[row["type"]].is_valid(row) is is_right, row


def test_it_is_what_asyncapi_says_that_it_should_be() -> None:
    skip_without("jsonschema_rs")
    import jsonschema_rs

    specification = json.loads(Path(tool("@asyncapi/specs")).read_text(encoding="utf-8"))
    validator = jsonschema_rs.validator_for(specification, validate_formats=True)
    document = held("asyncapi.json")

    assert [str(error) for error in validator.iter_errors(document)] == []
    assert not validator.is_valid(document | {"channels": []})
    broken = copy.deepcopy(document)
    broken["components"]["schemas"]["hello"]["type"] = "map"
    assert not validator.is_valid(broken)


# ---- The frames of the tests


def test_what_fits_no_schema_fails_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without("jsonschema_rs")
    good = Refused("name", "taken")
    bad = Match("m", "gin_rummy", 0, ("a", "b"), {}, Limits(), "c")
    for encoding in Encoding:
        frame = encode(good, encoding)
        decode_from_arena(frame, encoding, str)
        assert not frame_validation.taken()

        frame = encode(bad, encoding)
        [fault] = frame_validation.taken()
        assert fault.startswith("wrote what does not fit arena_to_bot.json: {'type': 'match'")

        decode_from_arena(frame, encoding, str)
        [fault] = frame_validation.taken()
        assert fault.startswith("read what does not fit arena_to_bot.json: ")


def test_so_it_does_in_a_program_that_a_test_starts() -> None:
    skip_without("jsonschema_rs")
    program = (
        "from protocol.codec import Encoding, encode\n"
        "from protocol.messages import Limits, Match, Refused\n"
        "encode(Refused('name', 'taken'), Encoding.MSGPACK)\n"
        "encode(Match('m', 'gin_rummy', 0, ('a', 'b'), {}, Limits(), 'c'), Encoding.MSGPACK)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=60, check=True)

    [fault] = frame_validation.taken()
    assert fault.startswith("wrote what does not fit arena_to_bot.json: {'type': 'match'")


def test_nothing_else_imports_the_generator() -> None:
    program = (
        "import sys, arena, bots.client, arena.cli\n"
        "assert 'protocol.codec' in sys.modules\n"
        "assert not any(name.startswith('protocol.schema') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=60, check=True)
