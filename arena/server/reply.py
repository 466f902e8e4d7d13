"""Answers to plain HTTP requests: a status, headers and a body, with our security headers. Pure.

The content policy forbids everything that the page does not need, to limit the harm of a mistake.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from typing import Protocol, TypeAlias

import msgspec

__all__ = [
    "CLOSE",
    "NO_CACHE",
    "NO_STORE",
    "PACKED",
    "PAGE_POLICY",
    "Header",
    "Headers",
    "Reply",
    "Visitor",
    "document",
    "knows",
    "pack",
    "problem",
    "reply",
    "takes_gzip",
    "text",
    "unchanged",
]

CLOSE = ("Connection", "close")
"""An answer with this header is the last one on its connection."""
NO_CACHE = ("Cache-Control", "no-cache")
"""A browser may cache it, but has to revalidate it by its ETag."""
NO_STORE = ("Cache-Control", "no-store")
PACKED = ("Content-Encoding", "gzip")
"""The header for a body that `pack` has made."""
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Permits what the page's own scripts and styles need, and nothing else."""

_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"
_WORTH = 0.9  # of the size: a smaller saving is not worth the unpacking
_TINY_BYTES = 1_000  # fits into one TCP segment, packed or not
_CSP = "Content-Security-Policy"
_ALWAYS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    (
        "Permissions-Policy",
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
)

Header: TypeAlias = tuple[str, str]


class Headers(Protocol):
    """The headers of a request."""

    def get_all(self, key: str, /) -> list[str]:
        """Return all values of one header, in order."""


class Reply(msgspec.Struct, frozen=True):
    """An HTTP answer."""

    status: int
    headers: tuple[Header, ...]
    body: bytes = b""


class Visitor(Protocol):
    """A connection whose request waits for its answer.

    Visitors with the same `address` are counted together. `is_secure` tells whether the request
    came over TLS, to the arena or to a trusted proxy.
    """

    address: str
    is_secure: bool

    def respond(self, status: int, headers: Iterable[Header], body: bytes) -> None:
        """Send the answer; ignored if the connection is gone."""

    def cut(self) -> None: ...


def reply(status: int, body: bytes, kind: str, *more: Header, policy: str = PAGE_POLICY) -> Reply:
    """Make an answer with a content type; `policy` is its Content-Security-Policy."""
    size = ("Content-Length", str(len(body)))
    headers = (("Content-Type", kind), size, *more, (_CSP, policy), *_ALWAYS)
    return Reply(status, headers, body)


def unchanged(*more: Header, policy: str = PAGE_POLICY) -> Reply:
    """Make the answer that the visitor's cached version is still valid."""
    return Reply(304, (*more, (_CSP, policy), *_ALWAYS))


def text(status: int, line: str, *more: Header) -> Reply:
    """Make an answer with a line of plain text, not cached unless `more` says so."""
    return reply(status, f"{line}\n".encode(), _TEXT, *(more or (NO_STORE,)))


def document(status: int, body: bytes, *more: Header) -> Reply:
    """Make an answer with a JSON document."""
    return reply(status, body, _JSON, *more)


def problem(status: int, line: str) -> Reply:
    """Make an answer with an error in JSON instead of a document."""
    return document(status, msgspec.json.encode({"error": line}), NO_STORE)


def pack(body: bytes, effort: int) -> bytes | None:
    """Pack a body with gzip, with an `effort` from 1 (fast) to 9 (small); None if not worth it.

    A body must have no secret beside text that an attacker chooses: its size would tell (BREACH).
    """
    if len(body) < _TINY_BYTES:
        return None
    packed = gzip.compress(body, effort, mtime=0)
    return packed if len(packed) < len(body) * _WORTH else None


def takes_gzip(headers: Headers) -> bool:
    """Return whether `Accept-Encoding` permits gzip."""
    for value in headers.get_all("Accept-Encoding"):
        for offer in value.split(","):
            name, _, weight = offer.partition(";")
            if name.strip().lower() in ("gzip", "*"):
                refused = weight.replace(" ", "").lower().rstrip("0.") == "q="
                return not refused
    return False


def knows(headers: Headers, etag: str) -> bool:
    """Return whether the visitor has this version already, by its `If-None-Match`."""
    wanted = etag.removeprefix("W/")
    for value in headers.get_all("If-None-Match"):
        tags = (tag.strip().removeprefix("W/") for tag in value.split(","))
        if any(tag in (wanted, "*") for tag in tags):
            return True
    return False
