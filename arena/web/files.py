"""The files of the page: read from the package once, hashed, compressed, and served from memory.

Their addresses contain the hash of all of them, so browsers cache them for ever and never mix two
versions. Only `index.html`, which names that hash, is asked for each time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

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

__all__ = ["PLACEHOLDER", "Files", "StaticFile", "page_files"]

PLACEHOLDER = b"{version}"  # in `index.html`, for the hash

_INDEX, _ICON = "index.html", "favicon.svg"
_STATIC = "/static/"
_VERSION_DIGITS = 16  # of SHA-256, 64 bits: two versions of a page never collide
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


class StaticFile:
    """The responses for one file, made in advance; the ending of `name` gives the content type."""

    def __init__(self, name: str, body: bytes, cache: Header, policy: str = PAGE_POLICY) -> None:
        kind = _KINDS.get(PurePosixPath(name).suffix, _KIND_ELSE)
        # Weak: packed and plain are the same page, but not the same bytes.
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
    """All files of a page, by name with `/` between folders; `version` is the hash of them."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.version = _version(contents)
        self._static = {
            name: StaticFile(name, body, _FOR_EVER)
            for name, body in contents.items()
            if name != _INDEX
        }
        index = contents[_INDEX].replace(PLACEHOLDER, self.version.encode())
        self._fixed = {"/": StaticFile(_INDEX, index, NO_CACHE)}
        if _ICON in contents:  # browsers also ask for it by themselves, at this path
            self._fixed[f"/{_ICON}"] = StaticFile(_ICON, contents[_ICON], NO_CACHE)

    def answer(self, path: str, headers: Headers) -> Reply:
        """The file at a path, of this version only, or 404."""
        name = path.removeprefix(f"{_STATIC}{self.version}/")
        file = self._fixed.get(path) or (self._static.get(name) if name != path else None)
        if file is None:
            return text(404, "there is nothing here")
        return file.answer(headers)


def page_files() -> Files:
    """The files of the installed page."""
    return Files(dict(_read(files("arena.web").joinpath("page"))))


def _read(folder: Traversable, within: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.startswith((".", "_")):  # left by editors and Python
            continue
        if entry.is_dir():
            yield from _read(entry, f"{within}{entry.name}/")
        else:
            yield within + entry.name, entry.read_bytes()


def _version(contents: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(f"{name}\0{len(contents[name])}\0".encode())
        digest.update(contents[name])
    return digest.hexdigest()[:_VERSION_DIGITS]
