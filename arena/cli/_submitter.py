"""A connection to `/submit` of a running arena, and the options that lead there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from arena.cli import _options as options
from arena.cli._arena_connection import connected_to
from protocol.errors import ArenaError, ProtocolError, Unreachable, UsageError
from protocol.messages import Refused
from protocol.submitting import (
    Enter,
    FromSubmitter,
    Rules,
    ToSubmitter,
    decode_to_submitter,
    encode_from_submitter,
)

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

__all__ = ["SubmitterConnection", "submitter_options"]

_ANSWER_S = 60.0  # a busy arena may take a while to answer; a long list takes it a second
_PATH = "submit"
_DEFAULT = click.core.ParameterSource.DEFAULT

Message = TypeVar("Message")


def submitter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options --url and --token; the command gets `arena`, which opens a connection."""

    @options.url_option
    @click.option(
        "--token",
        envvar=["ARENA_TOKEN", "ARENA_INSTRUCTOR"],
        show_envvar=True,
        help="Your token of the roster, or the instructor's.",
    )
    @functools.wraps(command)
    def gathered(*args: Any, url: str, token: str | None, **given: Any) -> Any:
        context = click.get_current_context()
        # What stands before the name of a command holds for it.
        above = {} if context.parent is None else context.parent.params
        if context.get_parameter_source("url") is _DEFAULT:
            url = above.get("url", url)
        token = token or above.get("token")
        if token is None and context.invoked_subcommand is None:
            raise UsageError("expected --token, or ARENA_TOKEN in the environment")
        # A token copied from tokens.csv may have the line's end with it.
        return command(*args, arena=SubmitterConnection(url, (token or "").strip()), **given)

    return gathered


class SubmitterConnection:
    """A connection that has entered; use it as a context.

    Entering raises `ArenaError` if the token is not good, `Unreachable` if no arena answers that
    takes submissions, and `UsageError` for a bad address.
    """

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._token = token
        self._stack = ExitStack()
        self._websocket: ClientConnection | None = None

    def __enter__(self) -> SubmitterConnection:
        self._websocket = self._stack.enter_context(connected_to(self.url, _PATH))
        try:
            self.send(Enter(self._token))
            self.expect(Rules)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def send(self, message: FromSubmitter) -> None:
        from websockets.exceptions import ConnectionClosed

        assert self._websocket is not None, "it was entered"
        try:
            self._websocket.send(encode_from_submitter(message), text=True)
        except ConnectionClosed as error:
            raise self._gone(error) from None

    def receive(self, within_s: float | None = _ANSWER_S) -> ToSubmitter:
        """The next message; `ArenaError` if it is a refusal, `TimeoutError` if none comes."""
        from websockets.exceptions import ConnectionClosed

        assert self._websocket is not None, "it was entered"
        try:
            message = decode_to_submitter(self._websocket.recv(within_s, decode=False))
        except ConnectionClosed as error:
            raise self._gone(error) from None
        except ProtocolError as error:
            text = f"what answers at {self._place} takes no submissions: {error}"
            raise Unreachable(text) from None
        if isinstance(message, Refused):
            raise ArenaError(message.text)
        return message

    def poll(self) -> ToSubmitter | None:
        """A message that has come already, if any."""
        try:
            return self.receive(0)
        except TimeoutError:
            return None

    def expect(self, kind: type[Message], within_s: float | None = _ANSWER_S) -> Message:
        """The next message of a type; others are left out."""
        try:
            while not isinstance(message := self.receive(within_s), kind):
                pass
        except TimeoutError:
            raise Unreachable(f"the arena at {self._place} does not answer") from None
        return message

    def _gone(self, error: Exception) -> Unreachable:
        return Unreachable(f"the connection to {self._place} is lost: {error}")

    @property
    def _place(self) -> str:
        """Its address for errors, with the proxy that leads there."""
        from protocol.address import through

        return self.url + through(self.url)
