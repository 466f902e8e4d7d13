"""Connects to a running arena and to its `/submit`, and shows the progress of a submission."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._refused_file import three_lines
from arena.cli._results import Found
from protocol.address import page_url
from protocol.codec import Encoding, decode_from_arena, encode
from protocol.errors import (
    ArenaError,
    ProtocolError,
    Unreachable,
    UsageError,
    one_line,
    token_advice,
)
from protocol.messages import Done, Instruct, Refused
from protocol.submitting import (
    Enter,
    FromSubmitter,
    Progressing,
    Rules,
    ToSubmitter,
    decode_to_submitter,
    encode_from_submitter,
)

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

__all__ = [
    "Entering",
    "SubmissionOutcome",
    "SubmissionProgress",
    "SubmissionStep",
    "SubmitterConnection",
    "connected_to",
    "entered",
    "instructed",
    "place_of",
    "submitter_options",
]

_TIMEOUT_S = 10.0  # to connect, and for an instruction's answer
_LONGEST_REASON = 200  # characters of a server's reason for refusing the connection
_ANSWER_S = 60.0  # a busy arena may answer late; a long list alone takes a second
_PATH = "submit"
_CLEAR = "\r\x1b[K"  # clears the terminal's last line
_LONGEST = 1000
_DECIDED = ("accepted", "refused")
_FAILED = "FAILED"
_IN_PLAY = " is in play in "  # comes before the games of an accepted version

Message = TypeVar("Message")


def place_of(url: str) -> str:
    """Return an arena's address for error messages, with the proxy used to reach it."""
    from protocol.address import through

    return url + through(url)


def connected_to(url: str, path: str = "") -> ClientConnection:
    """Connect to an arena's address or a path below it, through a proxy if one is configured.

    Raises:
        Unreachable: no arena answers there.
        UsageError: the address or the proxy is not valid.
    """
    from websockets.exceptions import InvalidMessage, InvalidStatus, InvalidURI, WebSocketException
    from websockets.sync.client import connect

    from protocol.address import proxy_to

    try:
        return connect(
            f"{url.rstrip('/')}/{path}" if path else url,
            proxy=proxy_to(url),
            open_timeout=_TIMEOUT_S,
            compression=None,
            max_size=None,
        )
    except InvalidURI:
        raise UsageError(f"expected an address such as ws://127.0.0.1:7700, got {url!r}") from None
    except InvalidStatus as error:
        said = error.response.body.decode(errors="replace")
        why = one_line(said.strip() or f"HTTP {error.response.status_code}", _LONGEST_REASON)
        raise Unreachable(f"what answers at {place_of(url)} says: {why}") from None
    except (OSError, TimeoutError, WebSocketException) as error:
        why = str(error) or "it does not answer"
        if isinstance(error, InvalidMessage) and url.startswith("ws://"):
            why += "; it may be a wss:// address"
        raise Unreachable(f"no arena answers at {place_of(url)}: {why}") from None


def instructed(websocket: ClientConnection, url: str, message: Instruct) -> Done:
    """Send an instruction to the arena at `url`, and wait for its answer.

    Raises `ArenaError` if the arena refuses, and `Unreachable` if it does not answer.
    """
    from websockets.exceptions import WebSocketException

    place = place_of(url)
    try:
        websocket.send(encode(message, Encoding.JSON), text=True)
        frame = websocket.recv(_TIMEOUT_S, decode=False)
    except (OSError, TimeoutError, WebSocketException) as error:
        raise Unreachable(
            f"no arena answers at {place}: {str(error) or 'it does not answer'}"
        ) from None
    try:
        [answer] = decode_from_arena(frame, Encoding.JSON, str)
    except (ProtocolError, ValueError) as error:
        raise Unreachable(f"what answers at {place} is no arena: {error}") from None
    if isinstance(answer, Refused):
        raise ArenaError(f"{answer.text}{token_advice(answer.text, message.token)}")
    if not isinstance(answer, Done):
        raise Unreachable(f"what answers at {place} is no arena")
    return answer


class SubmitterConnection:
    """A connection to an arena's `/submit`, after the arena has accepted the token."""

    def __init__(self, websocket: ClientConnection, url: str, token: str) -> None:
        self.url = url
        self._websocket = websocket
        self._token = token
        self._place = place_of(url)

    def send(self, message: FromSubmitter) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            self._websocket.send(encode_from_submitter(message), text=True)
        except ConnectionClosed as error:
            raise self._gone(error) from None

    def receive(self, within_s: float | None = _ANSWER_S) -> ToSubmitter:
        """Return the next message; `ArenaError` at a refusal, `TimeoutError` if none comes."""
        from websockets.exceptions import ConnectionClosed

        try:
            message = decode_to_submitter(self._websocket.recv(within_s, decode=False))
        except ConnectionClosed as error:
            raise self._gone(error) from None
        except ProtocolError as error:
            text = f"what answers at {self._place} takes no submissions: {error}"
            raise Unreachable(text) from None
        if isinstance(message, Refused):
            raise ArenaError(f"{message.text}{token_advice(message.text, self._token)}")
        return message

    def poll(self) -> ToSubmitter | None:
        """Return the next message if it has already arrived, else None."""
        try:
            return self.receive(0)
        except TimeoutError:
            return None

    def expect(self, kind: type[Message], within_s: float | None = _ANSWER_S) -> Message:
        """Return the next message of type `kind`, skipping all others."""
        try:
            while not isinstance(message := self.receive(within_s), kind):
                pass
        except TimeoutError:
            raise Unreachable(f"the arena at {self._place} does not answer") from None
        return message

    def ask(self, message: FromSubmitter, kind: type[Message]) -> Message:
        """Send a message, and return the answer, the next message of type `kind`."""
        self.send(message)
        return self.expect(kind)

    def _gone(self, error: Exception) -> Unreachable:
        return Unreachable(f"the connection to {self._place} is lost: {error}")


def _accepted(decided: Progressing, url: str, page: str) -> Iterator[str]:
    """Yield the lines that report an accepted submission."""
    from arena.cli._page_documents import next_runs

    yield f"accepted: {decided.text}; its page is {page}"
    games = decided.text.partition(_IN_PLAY)[2].split(", ")
    if plans := next_runs(url, games):
        yield f"next: {'; '.join(plans)}"


Entering = AbstractContextManager[SubmitterConnection]


@contextmanager
def entered(url: str, token: str) -> Iterator[SubmitterConnection]:
    """Connect to `/submit` of the arena at `url`, as the owner of a token.

    Raises `ArenaError` for an invalid token, `Unreachable` if no arena with submissions answers,
    and `UsageError` for an invalid address.
    """
    with connected_to(url, _PATH) as websocket:
        connection = SubmitterConnection(websocket, url, token)
        connection.ask(Enter(token), Rules)
        yield connection


def submitter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --url and --token; the command gets `arena`, a context manager for the connection.

    In a group, the options may also stand before the name of the subcommand.
    """

    @options.url_option
    @options.submitter_option
    @functools.wraps(command)
    def gathered(*args: Any, url: str, token: str | None, **given: Any) -> Any:
        context = click.get_current_context()
        if context.invoked_subcommand is not None:
            known = {name: each for name, each in (("url", url), ("token", token)) if each}
            context.default_map = {context.invoked_subcommand: known}
        elif token is None:
            raise UsageError("expected --token, or ARENA_TOKEN in the environment")
        # A token copied from tokens.csv may end with a line break.
        return command(*args, arena=entered(url, (token or "").strip()), **given)

    return gathered


class SubmissionStep(msgspec.Struct, frozen=True):
    """A finished step of a submission."""

    step: str
    status: str
    text: str


class SubmissionOutcome(msgspec.Struct, frozen=True):
    """The result of a submission."""

    submission: int
    state: str
    version: int | None
    text: str
    steps: tuple[SubmissionStep, ...]


class SubmissionProgress:
    """Shows a submission: finished steps on stdout unless `quiet`, a status line on stderr.

    The status line is shown on a terminal only. For a strategy in a `file`, most steps test our own
    client, so only the first failed step is shown, in three lines. `last` is the latest progress
    message of the arena.
    """

    def __init__(self, *, quiet: bool, file: Path | None = None) -> None:
        self.last: Progressing | None = None
        self._file = file
        self._is_quiet = quiet
        self._has_passing = sys.stderr.isatty()
        self._steps: list[SubmissionStep] = []

    def passing(self, text: str) -> None:
        """Show a line that the next one overwrites."""
        if self._has_passing:
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"{_CLEAR}{text[:width]}", err=True, nl=False)

    def clear(self) -> None:
        if self._has_passing:
            click.echo(_CLEAR, err=True, nl=False)

    def follow(self, arena: SubmitterConnection) -> Iterator[Found]:
        """Show progress until the submission is decided, then yield the result.

        Raises `Interrupted` at Ctrl-C, and `Unreachable` if the connection is lost; both say how to
        see the submission again. Raises `ArenaError` after the result of a refused submission.
        """
        try:
            while self.last is None or self.last.state not in _DECIDED:
                message = arena.receive(None)
                if isinstance(message, Progressing):
                    self.last = message
                    self._show(message)
        except KeyboardInterrupt:
            self.clear()
            raise Interrupted(f"nobody waits any more; {self._goes_on}") from None
        except Unreachable as error:
            self.clear()
            raise Unreachable(f"{error}; {self._goes_on}") from None
        last = self.last
        done = SubmissionOutcome(
            last.submission, last.state, last.version, last.text, tuple(self._steps)
        )
        if last.state != "refused":
            page = f"{page_url(arena.url)}/#/submit/{last.submission}"
            yield done, _accepted(last, arena.url, page)
            return
        failed = next((each for each in self._steps if each.status == _FAILED), None)
        if self._file is None or failed is None:
            yield done, ()
            raise ArenaError(f"submission {last.submission} was refused: {last.text}")
        what, where, todo = three_lines(failed.step, failed.text, self._file)
        yield done, (what, f"  in    {where}", f"  do    {todo}")
        rest = last.text.rpartition("; ")[2]  # the version that stays in play
        raise ArenaError(f"submission {last.submission} was refused; {rest}")

    @property
    def _goes_on(self) -> str:
        if self.last is None:
            return "`arena submissions` shows whether it has arrived"
        number = self.last.submission
        return f"submission {number} goes on, and `arena submissions follow {number}` shows it"

    def _show(self, progress: Progressing) -> None:
        left = progress.expected_s
        expected = "" if left is None else f", decided in about {output.duration(left)}"
        if progress.position is not None:
            self._steps.clear()  # back in the queue: the check starts over
            why = f": {progress.text}" if progress.text else ""
            where = f"waits at position {progress.position}"
            self.passing(f"submission {progress.submission} {where}{expected}{why}")
        elif progress.state in _DECIDED:
            self.clear()
        elif progress.status == "begun":
            self.passing(f"{progress.state}: {progress.step}{expected}")
        elif not progress.step:
            self.passing(f"{progress.state}{expected}")
        else:
            self._step_done(progress)

    def _step_done(self, progress: Progressing) -> None:
        self._steps.append(SubmissionStep(progress.step, progress.status, progress.text))
        if self._is_quiet or self._file is not None:
            return
        self.clear()
        first, *others = progress.text.splitlines() or [""]
        is_failed = progress.status == _FAILED
        lines = [f"{progress.step:<22} {progress.status:<7} {'' if is_failed else first}".rstrip()]
        lines += [f"    {text}" for text in ([first, *others] if is_failed else others)]
        click.echo("\n".join(one_line(line, _LONGEST) for line in lines))
        sys.stdout.flush()
