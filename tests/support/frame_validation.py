"""Validates every frame that our codec writes or reads in tests against the schemas.

`install` replaces entries of the codec's own tables, so that it makes no difference who has
imported what. Messages about a game from outside are held against its own document. Frames that the
codec refuses are not validated. Faults are noted, as an exception could be caught by the sender;
after the test tests/conftest.py fails it.

Programs that tests start do the same (tests/support/hooks/sitecustomize.py); they write their
faults to a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from protocol import codec
from protocol.codec import Encoding
from protocol.errors import UsageError
from protocol.games import PACKAGES
from protocol.messages import BotMessage

if TYPE_CHECKING:
    from jsonschema_rs import Validator

__all__ = ["FILE", "install", "note_in_file", "taken"]

FILE = "ARENA_TEST_FAULTS"
"""The environment variable that names the file for the faults of other processes."""

_SCHEMAS = Path(__file__).parents[2] / "protocol" / "schema"
_SHOWN = 1000  # letters of a frame

_faults: list[str] = []

_plain: dict[Encoding, Callable[[Any], Any]] = {
    Encoding.JSON: msgspec.json.decode,
    Encoding.MSGPACK: msgspec.msgpack.decode,
}


def install(note: Callable[[str], None] = _faults.append) -> bool:
    """Validate every frame of this process from now on, and call `note` with each fault.

    Returns:
        Whether there is a validator.
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
        reader.asks = _reading(reader.asks, encoding, from_arena)  # type: ignore[method-assign]
    return True


def note_in_file(fault: str) -> None:
    """Note a fault of a process that a test has started; in one write, so that no two mix."""
    with open(os.environ[FILE], "ab", buffering=0) as file:
        file.write(fault.encode(errors="replace").replace(b"\n", b" ") + b"\n")


def taken() -> list[str]:
    """The faults since the last call, of this process and of those that a test has started."""
    faults = _faults[:]
    _faults.clear()
    file = Path(os.environ.get(FILE, os.devnull))
    if file.is_file() and file.stat().st_size:
        faults += file.read_text(encoding="utf-8").splitlines()
        file.write_bytes(b"")
    return faults


_Check = Callable[[Any, str], None]


def _checks(name: str, note: Callable[[str], None]) -> _Check:
    import jsonschema_rs

    schema = json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    validator: Validator = jsonschema_rs.validator_for(schema)

    @cache
    def others() -> list[Validator]:
        # Made when a frame is none of ours: the command that writes schemas imports this hook, too.
        return [jsonschema_rs.validator_for(_document(game)) for game in PACKAGES]

    def fits(frame: Any) -> bool:
        if validator.is_valid(frame):
            return True
        messages = frame if isinstance(frame, list) else [frame]
        return all(
            any(one.is_valid(message) for one in (validator, *others())) for message in messages
        )

    def check(message: Any, what: str) -> None:
        if not fits(message):
            note(f"{what} what does not fit {name}.json: {str(message)[:_SHOWN]}")

    return check


def _document(game: str) -> Any:
    from protocol.schema.documents import game_document  # most programs do without

    with suppress(UsageError):  # a test's game may lack descriptions; then all of it fits
        return game_document(game)
    return {}


def _encoding(
    encode: Callable[[object], bytes], encoding: Encoding, from_bot: _Check, from_arena: _Check
) -> Callable[[object], bytes]:
    def encoded(message: object) -> bytes:
        frame = encode(message)
        first = message[0] if isinstance(message, list | tuple) else message
        check = from_bot if isinstance(first, BotMessage) else from_arena
        check(_plain[encoding](frame), "wrote")
        return frame

    return encoded


def _reading(read: Callable[..., Any], encoding: Encoding, check: _Check) -> Callable[..., Any]:
    def message(frame: bytes, *more: Any) -> Any:
        decoded = read(frame, *more)
        if decoded is None:
            return None  # it is read in another way
        try:
            plain = _plain[encoding](frame)
        except msgspec.DecodeError:
            return decoded  # in a field that is skipped a map's key may be what Python cannot hash
        check(plain, "read")
        return decoded

    return message
