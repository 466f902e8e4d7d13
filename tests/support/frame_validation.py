"""Every frame that the tests exchange is held against the schemas: whatever our codec writes, and whatever it can read.

`install` puts itself into the codec's own tables, so that it makes no difference who has imported what. Frames that the codec refuses
are not looked at: what is wrong with them is for other tests to say. What does not fit is kept until the test is over, as an error here
could be caught by whoever sends; then tests/conftest.py fails the test.

Programs that tests start do the same, see tests/support/hooks/sitecustomize.py; they write what does not fit to a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from protocol import codec
from protocol.codec import Encoding
from protocol.messages import BotMessage

if TYPE_CHECKING:
    from jsonschema_rs import Validator

__all__ = ["FILE", "install", "note_in_file", "taken"]

FILE = "ARENA_TEST_FAULTS"
"""The variable that names the file where other processes write what does not fit."""

_SCHEMAS = Path(__file__).parents[2] / "protocol" / "schema"
_SHOWN = 1000  # as much of a frame as says what it was

_faults: list[str] = []

_plain: dict[Encoding, Callable[[Any], Any]] = {
    Encoding.JSON: msgspec.json.decode,
    Encoding.MSGPACK: msgspec.msgpack.decode,
}


def install(note: Callable[[str], None] = _faults.append) -> bool:
    """From now on hold every frame of this process against the schemas; False if there is nothing to do it with.

    Args:
        note: told what does not fit.
    """
    if find_spec("jsonschema_rs") is None:
        return False
    from_arena = _checks("arena_to_bot", note)
    from_bot = _checks("bot_to_arena", note)
    for encoding in Encoding:
        encode, decode = codec._encode[encoding], codec._decode_bot[encoding]
        codec._encode[encoding] = _encoding(encode, encoding, from_bot, from_arena)
        codec._decode_bot[encoding] = _reading(decode, encoding, from_bot)
        reader = codec._READERS[encoding]
        read = _reading(reader.message, encoding, from_arena)
        reader.message = read  # type: ignore[method-assign]
    return True


def note_in_file(fault: str) -> None:
    """Note a fault of a process that a test has started; one write, so that those of several do not mix."""
    with open(os.environ[FILE], "ab", buffering=0) as file:
        file.write(fault.encode(errors="replace").replace(b"\n", b" ") + b"\n")


def taken() -> list[str]:
    """What did not fit since the last call, in this process and in those that a test has started."""
    found = _faults[:]
    _faults.clear()
    file = Path(os.environ.get(FILE, os.devnull))
    if file.is_file() and file.stat().st_size:
        found += file.read_text(encoding="utf-8").splitlines()
        file.write_bytes(b"")
    return found


_Check = Callable[[Any, str], None]


def _checks(name: str, note: Callable[[str], None]) -> _Check:
    """What notes all that does not fit a schema."""
    import jsonschema_rs

    schema = json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    validator: Validator = jsonschema_rs.validator_for(schema)

    def check(said: Any, what: str) -> None:
        if not validator.is_valid(said):
            note(f"{what} what does not fit {name}.json: {str(said)[:_SHOWN]}")

    return check


def _encoding(
    encode: Callable[[object], bytes], encoding: Encoding, from_bot: _Check, from_arena: _Check
) -> Callable[[object], bytes]:
    def encoded(message: object) -> bytes:
        frame = encode(message)
        check = from_bot if isinstance(message, BotMessage) else from_arena
        check(_plain[encoding](frame), "wrote")
        return frame

    return encoded


def _reading(read: Callable[..., Any], encoding: Encoding, check: _Check) -> Callable[..., Any]:
    def message(frame: bytes, *more: Any) -> Any:
        found = read(frame, *more)
        check(_plain[encoding](frame), "read")
        return found

    return message
