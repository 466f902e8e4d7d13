"""`arena docs`: which address it opens, and what it serves there."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from arena.manual.documents import documents

Run = Callable[..., Any]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was told to open; none is."""
    addresses: list[str] = []
    monkeypatch.setattr("webbrowser.open", addresses.append)
    return addresses


@pytest.fixture
def served() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the address that it has printed."""
    words = (sys.executable, "-m", "arena", "docs", "--no-browser", "--json")
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None, "it is a pipe"
        yield process, json.loads(process.stdout.readline())["url"]
        process.kill()


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("ws://127.0.0.1:7700", "http://127.0.0.1:7700/docs/"),
        ("wss://school.example/arena/", "https://school.example/arena/docs/"),
        ("http://[::1]:80", "http://[::1]:80/docs/"),
    ],
)
def test_the_manual_of_an_arena_is_opened(
    run: Run, opened: list[str], url: str, address: str
) -> None:
    assert run("docs", "--url", url) == (0, f"the manual is at {address}\n", "")
    assert run("docs", "--url", url, "--no-browser", "--json").document == {"url": address}
    assert opened == [address]


@pytest.mark.parametrize("url", ["school.example", "ftp://a", "ws://", ""])
def test_what_is_no_address_is_refused(run: Run, opened: list[str], url: str) -> None:
    line = run("docs", "--url", url).refusal()

    assert line == f"expected an address such as ws://127.0.0.1:7700, got {url!r}"
    assert not opened


def test_a_port_that_is_taken_is_a_line(run: Run, opened: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = run("docs", "--port", str(port)).refusal(1)

    assert line.startswith(f"cannot listen on 127.0.0.1:{port}: ")
    assert not opened


def test_the_manual_of_this_installation_is_served(
    served: tuple[subprocess.Popen[str], str],
) -> None:
    process, url = served
    assert urlsplit(url).hostname == "127.0.0.1"
    with urlopen(url) as page:
        html = page.read().decode()
    with urlopen(url.removesuffix("docs/")) as page:
        assert page.url == url

    for path in documents():
        with urlopen(f"{url}{path}") as page:
            assert page.headers["Content-Security-Policy"]
    assert all(path in html for path in documents())
    style = html.partition('stylesheet" href="../')[2].partition('"')[0]
    with urlopen(url.replace("docs/", style)) as page:
        assert page.headers["Content-Type"].startswith("text/css")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "arena: interrupted\n")


def test_head_has_no_body_and_a_connection_stays_open(
    served: tuple[subprocess.Popen[str], str],
) -> None:
    parts = urlsplit(served[1])
    connection = HTTPConnection(parts.netloc)
    for method in ("HEAD", "GET", "HEAD"):
        connection.request(method, "/docs/")
        answer = connection.getresponse()
        body = answer.read()

        assert answer.status == 200
        assert len(body) == (int(answer.headers["Content-Length"]) * (method == "GET"))
    connection.close()
