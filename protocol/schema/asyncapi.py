"""Makes the AsyncAPI 3 document: the wire as a bot sees it, for generators of docs and code.

There is one channel: a bot sends its messages there and receives the arena's; answers are replies.
Payloads are in AsyncAPI's own schema language, a superset of draft 7 of JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from protocol.messages import VERSION
from protocol.schema.definitions import FROM_BOT, Schema, definitions
from protocol.schema.documents import FROM_ARENA, WHOLE_NUMBERS, needed

__all__ = ["asyncapi"]

_REPLIES: dict[str, tuple[str, ...]] = {
    "hello": ("welcome", "refused"),
    "instruct": ("done", "refused"),
    "match": ("ready",),
    "ask": ("answer",),
}
"""The answers to a message; `refused` may come at any time."""

_ABOUT = (
    "What bots and the arena say to each other. "
    "A text frame is JSON, a binary frame is msgpack, of the same structure. "
    "A frame holds one message or an array of messages; "
    "the arena sends arrays only to a bot that said so in its `hello`. "
    f"{WHOLE_NUMBERS} protocol/README.md leads to all the rest: "
    "the order of things, time, what goes wrong and the rules of the games."
)


def asyncapi() -> dict[str, Any]:
    """Make the whole document."""
    said = (*FROM_BOT, *FROM_ARENA)
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Card Arena", "version": f"{VERSION}.0.0", "description": _ABOUT},
        "defaultContentType": "application/json",
        "servers": {
            "local": {
                "host": "127.0.0.1:7700",
                "protocol": "ws",
                "description": "An arena on the same machine, as `arena serve` starts it; "
                "`ARENA_URL` says where another one is.",
            }
        },
        "channels": {
            "arena": {
                "address": "/",
                "servers": [{"$ref": "#/servers/local"}],
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in said},
            }
        },
        "operations": dict(_operations()),
        "components": {
            "messages": {name: _message(name) for name in said},
            "schemas": {name: _seventh(definitions()[name]) for name in sorted(needed(said))},
        },
    }


def _operations() -> Iterator[tuple[str, Schema]]:
    for action, names in (("send", FROM_BOT), ("receive", FROM_ARENA)):
        for name in names:
            operation: Schema = {
                "action": action,
                "channel": {"$ref": "#/channels/arena"},
                "summary": _summary(name),
                "messages": _in_channel(name),
            }
            if name in _REPLIES:
                operation["reply"] = {
                    "channel": {"$ref": "#/channels/arena"},
                    "messages": _in_channel(*_REPLIES[name]),
                }
            yield f"{action}_{name}", operation


def _in_channel(*names: str) -> list[Schema]:
    return [{"$ref": f"#/channels/arena/messages/{name}"} for name in names]


def _message(name: str) -> Schema:
    return {
        "name": name,
        "summary": _summary(name),
        "payload": {"$ref": f"#/components/schemas/{name}"},
    }


def _summary(name: str) -> str:
    return str(definitions()[name]["description"])


def _seventh(schema: Any) -> Any:
    """Convert a schema to draft 7, with references in AsyncAPI's form."""
    if isinstance(schema, list):
        return [_seventh(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        # Draft 7 ignores everything beside a reference.
        name = schema["$ref"].rpartition("/")[2]
        reference = {"$ref": f"#/components/schemas/{name}"}
        rest = {key: part for key, part in schema.items() if key != "$ref"}
        return {**rest, "allOf": [reference]} if rest else reference
    found = {key: _seventh(part) for key, part in schema.items()}
    if "prefixItems" in found:
        found["items"] = found.pop("prefixItems")
        found["additionalItems"] = False
    return found
