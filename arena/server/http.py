"""The server's side of HTTP/1.1: requests and answers, until a request opens a WebSocket.

Requests have no bodies. They are handled one at a time: the next is parsed when the last has its
answer. A connection stays open after an answer, unless the peer or the answer says otherwise, or it
has used up its requests. Then it is idle. From the first byte of its next request on, it is
throttled like a new connection. So many requests cost their sender as much on one connection as on
many.
"""

from __future__ import annotations

import ssl
from collections.abc import Generator, Iterable
from enum import Enum, auto
from http import HTTPStatus

from websockets.datastructures import Headers
from websockets.exceptions import HeaderLineTooLong, RequestLineTooLong, TooManyHeaders
from websockets.http11 import Request, Response
from websockets.streams import StreamReader

from arena.server.entrance import send
from arena.server.reply import CLOSE, text
from arena.server.tcp import CLOSE_S, ConnectionContext, TcpConnection
from protocol.errors import one_line

__all__ = ["BadRequest", "Http", "HttpConnection", "HttpTurn"]

_MOST_REQUESTS = 1_000  # on one connection, as in nginx; closing it frees its memory
_SHOWN = 200  # letters of an error
_ANSWER_S = 60.0  # to make an answer; makers give up earlier
_FETCH_S = 30.0  # for the peer to read an answer that does not fit into the kernel's buffer
_IDLE_S = 15.0  # between two requests; the page asks every few seconds
_HEAD_BYTES = 64 * 1024  # more than an answer has before its body


class BadRequest(Exception):
    """The peer sent something other than a request; nothing after it can be read."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class Http:
    """The requests and answers of one connection, as bytes. Pure.

    `request` waits for its answer. `keeps_open` tells if the connection stays open after that.
    """

    __slots__ = ("_asked", "_parser", "_reader", "keeps_open", "request")

    def __init__(self) -> None:
        self.request: Request | None = None
        self.keeps_open = True
        self._reader = StreamReader()
        self._parser: Generator[None, None, Request] | None = None
        self._asked = 0

    @property
    def has_unread(self) -> bool:
        """Whether there are bytes that belong to no request yet."""
        return self._parser is not None or bool(self._reader.buffer)

    def receive(self, data: bytes) -> None:
        self._reader.feed_data(data)

    def next_request(self) -> Request | None:
        """Return the next complete request, if the one before it has its answer; else None.

        Raises `BadRequest` if the bytes are no request.
        """
        if self.request is not None or not self.has_unread:
            return None
        if self._parser is None:
            self._parser = Request.parse(self._reader.read_line)
        try:
            next(self._parser)
        except StopIteration as parsed:
            self._parser = None
            request: Request = parsed.value
        except Exception as error:
            self._parser = None
            raise _bad(error) from None
        else:  # the head is not complete
            return None
        self.request = request
        self._asked += 1
        self.keeps_open = self._asked < _MOST_REQUESTS and _may_stay(request)
        return request

    def answer(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> bytes:
        """Return the bytes of an answer to the waiting or a bad request; HEAD gets no `body`.

        `headers` must have a `Content-Length`; with `CLOSE` among them it is the last answer.
        """
        request, self.request = self.request, None
        fields = Headers(headers)
        if request is None or CLOSE[0] in fields:
            self.keeps_open = False
        if not self.keeps_open and CLOSE[0] not in fields:
            fields.set_insecure(*CLOSE)
        is_head = request is not None and request.method == "HEAD"
        phrase = HTTPStatus(status).phrase
        return Response(status, phrase, fields, b"" if is_head else body).serialize()

    def take_rest(self) -> bytes:
        """Return the bytes after the last request, which has opened a WebSocket."""
        rest = bytes(self._reader.buffer)
        self._reader.discard()
        return rest


class HttpTurn(Enum):
    """What an HTTP connection waits for."""

    ASK = auto()  # for the peer to send a request
    ANSWER = auto()  # for the arena to answer it
    FETCH = auto()  # for the peer to read the answer
    IDLE = auto()  # for nothing; the peer may ask again


class HttpConnection(TcpConnection):
    """A connection that has not become a WebSocket yet."""

    __slots__ = ("_has_ended", "_http", "_postponed", "_turn", "is_secure")

    def __init__(self, context: ConnectionContext, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(context, tls)
        self.is_secure = False
        self._http: Http | None = Http()  # until it is a WebSocket
        self._turn = HttpTurn.ASK
        self._postponed: Request | None = None  # waits for the throttle
        self._has_ended = False  # the peer sends no more, but may still read

    def respond(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        http, transport = self._http, self._transport
        if http is None or transport is None or transport.is_closing():
            return
        self._buffer_bytes = max(self._buffer_bytes, len(body) + _HEAD_BYTES)
        transport.set_write_buffer_limits(1)  # so that `resume_writing` comes when all is sent
        self._write_answer(http.answer(status, headers, body))
        if not http.keeps_open or self._is_last(http):
            self._end()
        elif self.is_behind:
            self._turn = HttpTurn.FETCH
            self._set_deadline(_FETCH_S)
        else:
            self._answered()

    def resume_reading(self) -> None:
        """Read on, and answer a request that had to wait."""
        super().resume_reading()
        waits = self._postponed or (self._http is not None and self._http.has_unread)
        if waits and self._transport is not None:
            self._loop.call_soon(self._go_on)

    def resume_writing(self) -> None:
        self.is_behind = False
        if self._turn is HttpTurn.FETCH:
            self._answered()
        self._owner.drained(self._caller)

    def _go_on(self) -> None:
        """Answer a request that had to wait."""
        is_asked = self._turn is HttpTurn.ASK and self._http is not None
        if is_asked and not (self._is_held or self._closing):
            self._attend(b"")

    def _read_request(self, http: Http, data: bytes) -> bytes:
        """Pass on a complete request; return the bytes after it if it opens a WebSocket."""
        http.receive(data)
        try:
            request, self._postponed = self._postponed or http.next_request(), None
        except BadRequest as error:
            send(self, text(error.status, str(error), CLOSE))
            return b""
        if request is None:
            if self._transport is not None and self._has_ended:
                self._transport.close()
            elif self._transport is not None and not self._is_held:
                self._transport.resume_reading()
            return b""
        proxies = self._entrance.proxies
        tls = self._transport and self._transport.get_extra_info("ssl_object")
        self.is_secure = bool(tls) or proxies.is_https(self._host, request.headers)
        address = proxies.origin(self._host, request.headers)
        if address != self.address and not self._entrance.throttle.moved(self, address):
            self._postponed = request
            self._is_served = False
            self._set_deadline(self._limits.hello_ms / 1000)
            return b""
        self._turn = HttpTurn.ANSWER
        self._entrance.requested(self._caller, request)
        if self._turn is HttpTurn.ANSWER and self._http is not None and not self._closing:
            self._set_deadline(_ANSWER_S)
        return http.take_rest() if self._http is None else b""

    def _is_last(self, http: Http) -> bool:
        """Return whether the peer sends no more and has all its answers."""
        return self._has_ended and not http.has_unread

    def _answered(self) -> None:
        """Go on after an answer; the next request may have come already."""
        assert self._http is not None, "a WebSocket is not answered"
        assert self._transport is not None, "the answer was written to it"
        if self._is_last(self._http):
            self._end()
            return
        self._turn = HttpTurn.IDLE
        self._set_deadline(_IDLE_S)
        self._entrance.idles(self._caller, self._first_address)
        if self._http.has_unread:
            self._loop.call_soon(self._ask_again)
        elif not self._is_held:
            self._transport.resume_reading()

    def _write_answer(self, data: bytes) -> None:
        """Write an answer; `is_behind` is true until the kernel has taken all of it."""
        transport = self._transport
        is_long = len(data) > _HEAD_BYTES
        if is_long and transport is not None and not transport.can_write_eof():
            # A TLS transport does not count bytes that it has passed on to the socket.
            # Only a second write waits in it until the kernel has taken the first.
            whole = memoryview(data)
            self._write(whole[:-1])
            self._write(whole[-1:])
        else:
            self._write(data)

    def _ask_again(self) -> None:
        """Treat a peer that sends its next request as if it had just connected."""
        if self._turn is HttpTurn.IDLE and self._transport is not None:
            self._turn = HttpTurn.ASK
            self._is_served = False
            self.address = self._first_address
            self._set_deadline(self._limits.hello_ms / 1000)
            self._entrance.asks_again(self)

    def _end(self) -> None:
        """Close after the answer that has been written."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._closing = True
        self._write(b"")
        # A TLS transport does not report all waiting bytes.
        waits = transport.get_write_buffer_size() > 0 or not transport.can_write_eof()
        self._set_deadline(_FETCH_S if waits else CLOSE_S)
        if self._has_ended:
            transport.close()  # it flushes first


def _may_stay(request: Request) -> bool:
    options = ",".join(request.headers.get_all("Connection")).split(",")
    wants_close = any(option.strip().lower() == "close" for option in options)
    return request.protocol == "HTTP/1.1" and not wants_close


def _bad(error: Exception) -> BadRequest:
    why = one_line(str(error), _SHOWN)
    match error:
        case RequestLineTooLong():
            status = HTTPStatus.REQUEST_URI_TOO_LONG
        case HeaderLineTooLong() | TooManyHeaders():
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        case _:
            status = HTTPStatus.BAD_REQUEST
    return BadRequest(status, f"expected a request of HTTP/1.1 without a body, got another: {why}")
