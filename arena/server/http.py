"""The server's side of HTTP/1.1 on one connection: bytes in, requests out, answers to bytes. Pure.

Requests have no bodies. They are given out one at a time: the next one is parsed when the last has
its answer. A connection stays open after an answer, unless the peer or the answer says otherwise or
it has had its share of requests.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from http import HTTPStatus

from websockets.datastructures import Headers
from websockets.exceptions import HeaderLineTooLong, RequestLineTooLong, TooManyHeaders
from websockets.http11 import Request, Response
from websockets.streams import StreamReader

from protocol.errors import one_line

__all__ = ["CLOSE", "BadRequest", "Http"]

CLOSE = ("Connection", "close")
"""An answer with this header is the last one on its connection."""

_MOST_REQUESTS = 1_000  # on one connection, as in nginx: then its memory is freed
_SHOWN = 200  # letters of what is wrong


class BadRequest(Exception):
    """The peer sent something other than a request; nothing after it can be read."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class Http:
    """The requests and answers of one connection.

    `request` waits for its answer; `keeps_open` is whether the connection stays open after that.
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
        """Whether bytes wait that belong to no request yet."""
        return self._parser is not None or bool(self._reader.buffer)

    def receive(self, data: bytes) -> None:
        self._reader.feed_data(data)

    def next_request(self) -> Request | None:
        """The next request, once it is complete and the one before it has its answer; else None.

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
        """The bytes of an answer, to the request that waits or to a bad one; HEAD gets no `body`.

        `headers` must have a `Content-Length`; `CLOSE` among them makes it the last answer.
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
        """The bytes after the latest request, which has made a WebSocket of the connection."""
        rest = bytes(self._reader.buffer)
        self._reader.discard()
        return rest


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
