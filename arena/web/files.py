"""The files of the page: read from the package once, hashed, compressed, and served from memory.

Their addresses contain a hash over all files, so browsers may cache them forever and never mix two
versions. Only `index.html`, which contains that hash, is requested every time.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

import msgspec

from arena.games.catalogue import GAMES, style_path, view_files, view_path
from arena.games.rules import Game
from arena.server.reply import (
    NO_CACHE,
    PACKED,
    PAGE_POLICY,
    Header,
    Headers,
    Reply,
    knows,
    pack,
    reply,
    takes_gzip,
    text,
    unchanged,
)
from protocol.messages import Limits
from protocol.schema.docstrings import of_class

__all__ = ["PLACEHOLDER", "Files", "StaticFile", "game_files", "page_files"]

PLACEHOLDER = b"{version}"  # in `index.html`, for the hash

_INDEX, _ICON = "index.html", "favicon.svg"
_STATIC = "/static/"
_VERSION_DIGITS = 16  # of SHA-256; 64 bits, so that two versions of a page never collide
_FOR_EVER = ("Cache-Control", "public, max-age=31536000, immutable")
_VARY = ("Vary", "Accept-Encoding")
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/plain; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_KIND_ELSE = "application/octet-stream"
_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class StaticFile:
    """The prepared responses for one file; the extension of `name` gives the content type."""

    def __init__(self, name: str, body: bytes, cache: Header, policy: str = PAGE_POLICY) -> None:
        kind = _KINDS.get(PurePosixPath(name).suffix, _KIND_ELSE)
        # A weak tag: the compressed and the plain file have the same content, but other bytes.
        self.etag = f'W/"{hashlib.sha256(body).hexdigest()[:_VERSION_DIGITS]}"'
        more = (("ETag", self.etag), cache, _VARY)
        self.plain = reply(200, body, kind, *more, policy=policy)
        self.unchanged = unchanged(*more, policy=policy)
        self.packed = self.plain
        if (packed := pack(body, 9)) is not None:
            self.packed = reply(200, packed, kind, PACKED, *more, policy=policy)

    def answer(self, headers: Headers) -> Reply:
        if knows(headers, self.etag):
            return self.unchanged
        return self.packed if takes_gzip(headers) else self.plain


class Files:
    """All files of a page, by name with `/` between folders; `version` is their common hash."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.version = _version(contents)
        self._static = {
            name: StaticFile(name, body, _FOR_EVER)
            for name, body in contents.items()
            if name != _INDEX
        }
        index = contents[_INDEX].replace(PLACEHOLDER, self.version.encode())
        self._fixed = {"/": StaticFile(_INDEX, index, NO_CACHE, _policy(index))}
        if _ICON in contents:  # browsers request it at this path on their own
            self._fixed[f"/{_ICON}"] = StaticFile(_ICON, contents[_ICON], NO_CACHE)

    def answer(self, path: str, headers: Headers) -> Reply:
        """Return the file at a path, of this version only, or 404."""
        name = path.removeprefix(f"{_STATIC}{self.version}/")
        file = self._fixed.get(path) or (self._static.get(name) if name != path else None)
        if file is None:
            return text(404, "there is nothing here")
        return file.answer(headers)


def page_files() -> Files:
    """Load the files of the installed page, and the files that describe games to it."""
    return Files({**dict(_read(files("arena.web").joinpath("page"))), **game_files()})


def game_files() -> dict[str, bytes]:
    """Return the modules that draw games, and `games.js`, which describes each game."""
    views = {f"games/{name}": body for name, body in view_files().items()}
    described = msgspec.json.encode({name: _described(game) for name, game in GAMES.items()})
    limits = msgspec.json.encode(_said(Limits))
    script = b"export const GAMES = %b;\nexport const LIMITS = %b;\n" % (described, limits)
    return {**views, "games/games.js": script}


def _described(game: Game) -> dict[str, object]:
    """Describe a game for the page; its modules are beside `games.js`."""
    words, judging = game.vocabulary, game.judging
    usual = words.read_settings(game.for_people)
    return {
        "title": words.title,
        "seats": game.seats,
        "round": words.round,
        "about": game.about,
        "summary": game.summary,
        "points": game.points,
        "unit": "" if game.unit is None else game.unit.name,
        "is_count": game.is_count,
        # How fast the mistakes of a match are found; empty if they cannot be.
        "judges": "" if judging is None else "slow" if judging.is_slow else "quick",
        "settings": _said(words.settings),
        "view": view_path(game),
        "style": style_path(game),
        "closes": words.closes.__struct_config__.tag,
        "follows": [news.__struct_config__.tag for news in words.follows],
        "by_seat": {
            kind: [
                name for name in news.__struct_fields__ if "by seat" in _said(news).get(name, "")
            ]
            for kind, news in words.news.items()
        },
        "seat_fields": sorted(
            {
                name
                for kind in (*words.questions.values(), *words.news.values())
                for name, text in _said(kind).items()
                if text.startswith("the seat")
            }
        ),
        "private": [news.__struct_config__.tag for news in words.private],
        "choices": [
            {
                "setting": choice.setting,
                "label": choice.label,
                "least": choice.least,
                "most": choice.most,
                "first": getattr(usual, choice.setting),
            }
            for choice in game.choices
            if choice.is_offered
        ],
    }


def _said(cls: type) -> Mapping[str, str]:
    """Return the docstring's description of each field; Python -OO leaves none."""
    return of_class(cls).fields if vars(cls).get("__doc__") else {}


def _read(folder: Traversable, within: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.startswith((".", "_")):  # files of editors and Python
            continue
        if entry.is_dir():
            yield from _read(entry, f"{within}{entry.name}/")
        else:
            yield within + entry.name, entry.read_bytes()


def _policy(index: bytes) -> str:
    """Return `PAGE_POLICY`, also allowing the inline scripts of a page."""
    digests = (hashlib.sha256(script).digest() for script in _INLINE.findall(index))
    allowed = [f"'sha256-{b64encode(digest).decode()}'" for digest in digests]
    return PAGE_POLICY.replace("script-src 'self'", " ".join(["script-src 'self'", *allowed]))


def _version(contents: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(f"{name}\0{len(contents[name])}\0".encode())
        digest.update(contents[name])
    return digest.hexdigest()[:_VERSION_DIGITS]
