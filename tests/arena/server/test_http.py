"""HTTP on one connection, without sockets: which requests come out of bytes, and what goes back."""

from __future__ import annotations

import pytest
from websockets.http11 import Request

from arena.server.http import BadRequest, Http
from arena.server.reply import CLOSE

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"


def answered(http: Http, body: bytes = b"hello", *headers: tuple[str, str]) -> bytes:
    """The bytes of an answer of 200."""
    size = ("Content-Length", str(len(body)))
    return http.answer(200, (size, *headers), body)


def said(data: bytes) -> tuple[Http, Request | None]:
    http = Http()
    http.receive(data)
    return http, http.next_request()


def test_a_request_comes_out_when_it_is_whole() -> None:
    http = Http()
    for byte in GET[:-1]:
        http.receive(bytes([byte]))
        assert http.next_request() is None
    http.receive(GET[-1:])
    request = http.next_request()

    assert request is not None
    assert (request.method, request.path) == ("GET", "/a")
    assert not http.has_unread


def test_requests_come_out_in_order_each_after_the_answer_to_the_last() -> None:
    http, first = said(b"".join(GET.replace(b"/a", f"/{n}".encode()) for n in range(3)))
    paths = []
    while first is not None:
        assert http.next_request() is None, "it has no answer yet"
        paths.append(first.path)
        answered(http)
        first = http.next_request()

    assert paths == ["/0", "/1", "/2"]


@pytest.mark.parametrize(
    ("head", "stays"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: upgrade\r\n\r\n", True),  # nginx
        (b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nConnection: te\r\nConnection: x, close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
    ],
)
def test_a_connection_stays_open_unless_somebody_wants_otherwise(head: bytes, stays: bool) -> None:
    http, request = said(head)
    answer = answered(http)

    assert request is not None
    assert http.keeps_open is stays
    assert (b"\r\nConnection: close\r\n" in answer) is not stays


def test_an_answer_may_be_the_last() -> None:
    http, _ = said(GET)
    answer = answered(http, b"", CLOSE)

    assert not http.keeps_open
    assert answer.count(b"Connection: close") == 1


def test_a_connection_has_its_share_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.server.http._MOST_REQUESTS", 3)
    http = Http()
    stays = []
    for _ in range(3):
        http.receive(GET)
        http.next_request()
        answered(http)
        stays.append(http.keeps_open)

    assert stays == [True, True, False]


def test_head_is_answered_without_the_body() -> None:
    http, _ = said(b"HEAD / HTTP/1.1\r\n\r\n")
    answer = answered(http)

    assert b"\r\nContent-Length: 5\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\n\n", 400),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /" + b"x" * 10_000, 414),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 10_000, 431),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431),
    ],
)
def test_what_is_no_request_is_told_in_one_line_and_is_the_end(data: bytes, status: int) -> None:
    http = Http()
    http.receive(data)
    with pytest.raises(BadRequest) as bad:
        http.next_request()
    answered(http)

    assert bad.value.status == status
    assert "without a body" in str(bad.value)
    assert "\n" not in str(bad.value)
    assert not http.keeps_open


def test_what_follows_a_request_can_be_taken() -> None:
    http, _ = said(GET + b"\x81\x80")

    assert http.take_rest() == b"\x81\x80"
    assert not http.has_unread
