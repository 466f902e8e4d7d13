"""Fetches the documents of a running arena's web page, for commands that can also read a database.

`arena standings`, `replay` and `mistakes` take `--url` and `--token`, so that a student needs no
database. They fetch the same documents as browsers (`arena/web/README.md`), limited to what the
token's owner may see (J8).
"""

from __future__ import annotations

from collections.abc import Callable
from http.client import HTTPException, InvalidURL
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

import click
import msgspec
from click.core import ParameterSource

from arena.cli import _options as options
from arena.cli._arena_connection import place_of
from protocol.address import page_url, proxy_to, through, websocket_url
from protocol.errors import ArenaError, Unreachable, UsageError, one_line, token_advice

__all__ = ["ArenaPages", "check_database", "is_database_named", "pages_asked_for", "pages_options"]

Command = TypeVar("Command", bound=Callable[..., Any])

_URL, _TOKEN = "arena.cli.pages_url", "arena.cli.pages_token"
_TIMEOUT_S = 30.0


class _Refusal(msgspec.Struct):
    error: str


class ArenaPages(msgspec.Struct, frozen=True):
    """The documents of the arena at `url`, a WebSocket address, as the owner of `token` sees them.

    Without a token, only public documents are available.
    """

    url: str
    token: str | None = None

    def get(self, *path: str, **query: object) -> bytes:
        """Fetch a document below `/api/`, given by the parts of its path.

        Raises:
            ArenaError: the arena refuses, with the reason that it gives.
            Unreachable: no arena answers there.
            UsageError: the address or the proxy is not valid.
        """
        if not self.url.startswith(("ws://", "wss://")):
            raise self._invalid()
        proxy = proxy_to(self.url)
        if proxy is not None and not proxy.startswith("http"):
            way = through(self.url)
            raise UsageError(f"expected an HTTP proxy in the environment for --url, got one{way}")
        if not (self.token or "").isascii():
            raise UsageError("expected a token of ASCII letters, digits, - and _ after --token")
        asked = f"{page_url(self.url)}/api/{'/'.join(quote(part, safe='') for part in path)}.json"
        if given := {name: value for name, value in query.items() if value is not None}:
            asked += f"?{urlencode(given)}"
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token.strip()}"}
        opener = build_opener(
            ProxyHandler({} if proxy is None else {"http": proxy, "https": proxy})
        )
        try:
            with opener.open(Request(asked, headers=headers), timeout=_TIMEOUT_S) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            raise self._refused(error) from None
        except (InvalidURL, ValueError):  # an invalid port, for instance
            raise self._invalid() from None
        except (URLError, HTTPException, OSError) as error:
            why = getattr(error, "reason", error)
            raise Unreachable(f"no arena answers at {place_of(self.url)}: {why}") from None

    def _invalid(self) -> UsageError:
        return UsageError(f"expected an address such as ws://127.0.0.1:7700, got {self.url!r}")

    def _refused(self, error: HTTPError) -> ArenaError:
        try:
            said = error.read()
        except (HTTPException, OSError):
            said = b""
        try:
            text = msgspec.json.decode(said, type=_Refusal).error
        except msgspec.MsgspecError:
            why = one_line(said.decode(errors="replace").strip() or f"HTTP {error.code}")
            return Unreachable(f"what answers at {place_of(self.url)} says: {why}")
        return ArenaError(f"{text}{token_advice(text, self.token)}")


def pages_options(command: Command) -> Command:
    """Add the options --url and --token, which `pages_asked_for` reads."""

    def note(key: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
        def noted(context: click.Context, _param: click.Parameter, value: str | None) -> None:
            context.meta[key] = value

        return noted

    url = "Ask the arena at this address, as in `arena connect`, instead of a database."
    token = "With --url: your token, for what your own seats saw while a competition goes on."
    command = click.option(
        *("--token",),
        envvar=["ARENA_TOKEN", "ARENA_INSTRUCTOR"],
        show_envvar=True,
        expose_value=False,
        callback=note(_TOKEN),
        help=token,
    )(command)
    return click.option("--url", expose_value=False, callback=note(_URL), help=url)(command)


def pages_asked_for() -> ArenaPages | None:
    """Return the arena that `--url` names, or None.

    Without `--url` and without a database, a link given in place of an id names the arena.
    """
    context = click.get_current_context()
    meta = context.meta
    url = meta.get(_URL)
    if url is None and not (is_database_named() or Path(context.params["db"]).is_file()):
        url = meta.get(options.LINK)
    return None if url is None else ArenaPages(websocket_url(url), meta.get(_TOKEN))


def check_database(db: str) -> None:
    """Raise `UsageError` if --db is not given and the default database file does not exist."""
    if not (is_database_named() or Path(db).is_file()):
        raise UsageError(
            f"expected an arena's database, found no file {db}; name one with --db, "
            "or an arena with --url"
        )


def is_database_named() -> bool:
    """Whether --db was given explicitly."""
    source = click.get_current_context().get_parameter_source("db")
    return source is not ParameterSource.DEFAULT
