"""What holds of all commands, and `arena doctor` and `arena docs`, called as people do."""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit
from urllib.request import urlopen

import click
import pytest

from arena.cli import COMMANDS, command_named, main
from arena.cli import _options as options
from arena.cli import _output as output
from arena.sandbox import bubblewrap
from arena.sandbox.languages import Language
from arena.web.manual.documents import documents
from protocol.version import __version__
from tests.support.in_process import Run


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"arena {__version__}\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there(run: Run, name: str) -> None:
    command = command_named(name)

    assert isinstance(command, click.Command)
    assert command.name == name
    assert COMMANDS[name] in run("--help").out


def test_a_closed_stdout(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    line = run("odds", "tcp", "--trials", "1").refusal(status=1)

    assert line == "standard output is closed, expected it open"


def test_a_closed_stderr(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)

    assert run("odds", "tcp", "--trials", "1", "--json").document["trials"] == 1
    assert run("odds").status == 2


def test_ctrl_c(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(options, "fresh_seed", interrupted)

    assert run("play", "akq", "nash", "nash").refusal(status=130) == "interrupted"


@pytest.mark.parametrize(
    ("argv", "unit", "work"),
    [
        (["odds", "tcp"], "hands", "arena.cli.odds.odds"),
        (
            ["ruin", "tcp", "always", "--stake", "100", "--goal", "200"],
            *("trials", "arena.cli._lab_runs.play_parts"),
        ),
    ],
    ids=["odds", "ruin"],
)
def test_ctrl_c_says_how_far_it_came_and_how_to_go_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, argv: list[str], unit: str, work: str
) -> None:
    def interrupted(*_: object, report: Callable[[int], None], **__: object) -> None:
        report(2)
        raise KeyboardInterrupt

    monkeypatch.setattr(work, interrupted)
    line = run(*argv, "--trials", "5000", "--seed", "7").refusal(130)

    assert line == (
        f"interrupted after 2 of 5,000 {unit}; "
        "--seed 7 repeats the run, and a smaller --trials shortens it"
    )


def test_a_full_disk(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output, "print_json", full)
    line = run("odds", "tcp", "--trials", "1", "--json").refusal(status=1)

    assert line == "No space left on device"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_is_shown_on_a_terminal_and_not_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    with output.progress("Gin rummy", 2, "game", seed=1, less="--games") as progress:
        progress.tick()

    assert progress.done == 1
    assert ("Gin rummy" in stderr.getvalue()) == is_terminal
    assert bool(stderr.getvalue()) == is_terminal


def test_main_reads_the_process_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["arena", "--version"])

    assert main() == 0
    assert capsys.readouterr().out.startswith("arena ")


def test_every_layer_is_shown_with_why_not(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "probe", lambda **_: "bubblewrap is not installed")
    out, layers = run("doctor").text, run("doctor", "--json").document["layers"]

    assert "not isolated: bubblewrap is not installed" in out
    assert len(layers) == 9 + len(Language)
    for layer in layers:
        assert layer["name"] in out
        assert (type(layer["active"]), bool(layer["detail"])) == (bool, True)


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


def test_the_manual_of_an_arena_is_opened(run: Run, opened: list[str]) -> None:
    address = "https://school.example/arena/docs/"

    assert (
        run("docs", "--url", "wss://school.example/arena/").text == f"the manual is at {address}\n"
    )
    assert opened == [address]


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
