"""Answers to plain HTTP requests: a status, headers and bytes, with what every answer of ours says to browsers.

Pure: nothing here knows a socket. The policy forbids the page whatever it does not need, so that a mistake in it stays small.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from typing import Protocol, TypeAlias

import msgspec

__all__ = [
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

NO_CACHE = ("Cache-Control", "no-cache")
"""It may be kept, but has to be asked for again, by its ETag."""
NO_STORE = ("Cache-Control", "no-store")
PACKED = ("Content-Encoding", "gzip")
"""The body is what `pack` has made of it."""
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""What the page's own scripts and styles need, and nothing else."""

_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"
_WORTH = 0.9  # what packing must save, or it is not worth unpacking
_TINY_BYTES = 1_000  # goes in one segment of TCP, packed or not
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
    """Those of a request."""

    def get_all(self, key: str, /) -> list[str]:
        """Every value that one has, in order."""


class Reply(msgspec.Struct, frozen=True):
    """What goes back, once and for all.

    Attributes:
        status: a status of HTTP.
        headers: in their order.
        body: what they describe.
    """

    status: int
    headers: tuple[Header, ...]
    body: bytes = b""


class Visitor(Protocol):
    """Who has sent a request and waits for its answer.

    Attributes:
        address: where connections of the same origin are counted together.
        is_secure: its request came over TLS, to us or to a proxy that we trust.
    """

    address: str
    is_secure: bool

    def respond(self, status: int, headers: Iterable[Header], body: bytes) -> None:
        """Send the answer; nothing happens if the visitor has gone."""

    def cut(self) -> None:
        """Close without a word."""


def reply(status: int, body: bytes, kind: str, *more: Header, policy: str = PAGE_POLICY) -> Reply:
    """An answer of some kind of content; `policy` says what a browser may do with it."""
    size = ("Content-Length", str(len(body)))
    headers = (("Content-Type", kind), size, *more, (_CSP, policy), *_ALWAYS)
    return Reply(status, headers, body)


def unchanged(*more: Header, policy: str = PAGE_POLICY) -> Reply:
    """What the visitor has is still what it would get."""
    return Reply(304, (*more, (_CSP, policy), *_ALWAYS))


def text(status: int, line: str, *more: Header) -> Reply:
    """A line for people, which is of this moment."""
    return reply(status, f"{line}\n".encode(), _TEXT, *(more or (NO_STORE,)))


def document(status: int, body: bytes, *more: Header) -> Reply:
    """A document in JSON."""
    return reply(status, body, _JSON, *more)


def problem(status: int, line: str) -> Reply:
    """Why there is no document, in one line."""
    return document(status, msgspec.json.encode({"error": line}), NO_STORE)


def pack(body: bytes, effort: int) -> bytes | None:
    """A body packed with gzip; None if that is not worth it.

    It may hold nothing secret beside what somebody else can choose and send again and again: how long it is when packed would tell (BREACH).

    Args:
        body: as it is.
        effort: from 1, quick, to 9, small.
    """
    if len(body) < _TINY_BYTES:
        return None
    packed = gzip.compress(body, effort, mtime=0)
    return packed if len(packed) < len(body) * _WORTH else None


def takes_gzip(headers: Headers) -> bool:
    """Whether `Accept-Encoding` names gzip, and not to refuse it."""
    for value in headers.get_all("Accept-Encoding"):
        for offer in value.split(","):
            name, _, weight = offer.partition(";")
            if name.strip().lower() in ("gzip", "*"):
                refused = weight.replace(" ", "").lower().rstrip("0.") == "q="
                return not refused
    return False


def knows(headers: Headers, etag: str) -> bool:
    """Whether a request has `If-None-Match` with this tag: then the visitor has that version."""
    wanted = etag.removeprefix("W/")
    for value in headers.get_all("If-None-Match"):
        tags = (tag.strip().removeprefix("W/") for tag in value.split(","))
        if any(tag in (wanted, "*") for tag in tags):
            return True
    return False
