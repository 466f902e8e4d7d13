"""`arena docs`: shows the manual in a browser, of this installation or of a running arena."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import click
import msgspec
from websockets.datastructures import Headers

from arena.cli._results import Found, result_command
from arena.server.reply import NO_STORE, Reply, text
from arena.web.files import page_files
from arena.web.manual_pages import MANUAL, ManualPages
from protocol.errors import Unreachable, UsageError

__all__ = ["command"]

_HOST = "127.0.0.1"
_SCHEMES = {"ws": "http", "wss": "https", "http": "http", "https": "https"}


class _Manual(msgspec.Struct, frozen=True):
    url: str


@result_command("docs", prints=_Manual)
@click.option(
    "--url",
    metavar="URL",
    help="Open the manual of the arena that runs there, such as ws://127.0.0.1:7700.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Where to serve the manual of this installation [default: any free port].",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open nothing.")
def command(url: str | None, port: int, no_browser: bool) -> Iterator[Found]:
    """Read the manual of this installation, without the Internet.

    It is served to this machine alone until Ctrl-C is pressed. With --url the browser opens the
    manual of an arena that runs, which is the manual of that arena's version, and the command ends
    at once.
    """
    # Print the address before opening or serving anything: another program may wait for it.
    if url is not None:
        address = _manual_of(url)
        yield _Manual(address), f"the manual is at {address}"
        if not no_browser:
            webbrowser.open(address)
        return
    with _listen(port) as server:
        address = f"http://{_HOST}:{server.server_port}{MANUAL}"
        yield _Manual(address), f"the manual is at {address}"
        if not no_browser:
            # In a thread, as a text-mode browser returns only when it is closed.
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server.serve_forever()


def _manual_of(url: str) -> str:
    """Return the address of the manual of the arena at `url`; raises `UsageError` if invalid."""
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.netloc:
        raise UsageError(f"expected an address such as ws://127.0.0.1:7700, got {url!r}")
    return f"{_SCHEMES[parts.scheme]}://{parts.netloc}{parts.path.rstrip('/')}{MANUAL}"


class _ManualServer(ThreadingHTTPServer):
    """Serves the manual and the page files that it uses, to this machine only."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__((_HOST, port), _ManualRequest)
        self._files = page_files()
        self._manual = ManualPages(self._files.version)

    def answer(self, path: str, headers: Headers) -> Reply:
        path, _, query = path.partition("?")
        if path == "/":
            return text(307, "the manual is at docs/", ("Location", MANUAL.lstrip("/")), NO_STORE)
        if f"{path}/".startswith(MANUAL):
            return self._manual.answer(path, query, headers)
        return self._files.answer(path, headers)


def _listen(port: int) -> _ManualServer:
    try:
        return _ManualServer(port)
    except OSError as error:
        raise Unreachable(
            f"cannot listen on {_HOST}:{port}: {error.strerror}; choose another --port, or none"
        ) from None


class _ManualRequest(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _ManualServer

    def do_GET(self) -> None:
        reply = self.server.answer(self.path, Headers(self.headers.items()))
        self.send_response(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(reply.body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Print nothing: `http.server` would print a line for every request."""
