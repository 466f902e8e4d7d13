"""Whose pages may open WebSockets: the arena's own and those that are named, and no forged ones."""

from __future__ import annotations

import pytest
from websockets.datastructures import Headers

from arena.server.origins import Origins, below, is_loopback, read_base_path, read_origin
from protocol.errors import UsageError


def origins(*listens: str, allowed: tuple[str, ...] = ()) -> Origins:
    made = Origins()
    made.allow(allowed)
    for host in listens:
        made.listens(host)
    return made


def headers(origin: str | None, host: str | None) -> Headers:
    said = Headers()
    if origin is not None:
        said["Origin"] = origin
    if host is not None:
        said["Host"] = host
    return said


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, "127.0.0.1:7700"),
        (None, "evil.example"),  # no browser
        (None, None),
        ("http://127.0.0.1:7700", "127.0.0.1:7700"),
        ("http://127.9.9.9:7700", "127.9.9.9:7700"),
        ("http://LOCALHOST:7700", "localhost:7700"),
        ("http://[::1]:7700", "[::1]:7700"),
        ("http://localhost", "localhost"),
        ("http://localhost", "localhost:80"),
        ("https://localhost", "localhost:443"),
    ],
)
def test_our_own_page_and_programs_come_in(origin: str | None, host: str | None) -> None:
    assert origins("127.0.0.1").refusal(headers(origin, host)) is None


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://evil.example", "127.0.0.1:7700"),
        ("http://127.0.0.1:7701", "127.0.0.1:7700"),
        ("http://127.0.0.1", "127.0.0.1:7700"),
        ("https://localhost:7700", "localhost:443"),
        ("null", "127.0.0.1:7700"),
        ("", "127.0.0.1:7700"),
        ("file://", "127.0.0.1:7700"),
        ("chrome-extension://abcdef", "127.0.0.1:7700"),
        ("http://127.0.0.1:7700@evil.example", "127.0.0.1:7700"),
        ("http://evil.example/127.0.0.1:7700", "127.0.0.1:7700"),
        ("http://127.0.0.1:7700", None),
        ("http://127.0.0.1:7700", "127.0.0.1:7700, evil.example"),
        ("http://127.0.0.1:99999999", "127.0.0.1:99999999"),
    ],
)
def test_other_pages_do_not(origin: str, host: str | None) -> None:
    for where in ("127.0.0.1", "0.0.0.0"):
        why = origins(where).refusal(headers(origin, host))

        assert why is not None
        assert "\n" not in why
        assert "--origin" in why


def test_a_foreign_name_that_points_to_loopback_is_found_out() -> None:
    rebound = headers("http://evil.example:7700", "evil.example:7700")

    assert "loopback" in (origins("127.0.0.1").refusal(rebound) or "")
    assert "loopback" in (origins("localhost", "::1").refusal(rebound) or "")


def test_an_arena_that_others_can_reach_cannot_know_its_names() -> None:
    named = headers("http://arena.school:7700", "arena.school:7700")

    assert origins("0.0.0.0").refusal(named) is None
    assert origins("127.0.0.1", "192.168.0.4").refusal(named) is None


def test_a_proxy_that_is_named_comes_in_whatever_it_says_as_host() -> None:
    proxied = origins("127.0.0.1", allowed=("https://arena.example.org/",))

    assert proxied.refusal(headers("https://arena.example.org", "127.0.0.1:7700")) is None
    assert proxied.refusal(headers("https://arena.example.org:443", "x")) is None
    assert proxied.refusal(headers("http://arena.example.org", "127.0.0.1:7700"))
    assert proxied.host_refusal(headers(None, "arena.example.org")) is None
    assert proxied.host_refusal(headers(None, "evil.example"))


def test_two_origins_are_none() -> None:
    said = headers("http://127.0.0.1:7700", "127.0.0.1:7700")
    said["Origin"] = "http://evil.example"

    assert origins("127.0.0.1").refusal(said) is not None
    assert origins("::", allowed=("http://127.0.0.1:7700",)).refusal(said) is not None


def test_two_hosts_are_as_good_as_the_worse() -> None:
    said = headers(None, "127.0.0.1:7700")
    said["Host"] = "evil.example"

    assert origins("127.0.0.1").host_refusal(said) is not None


@pytest.mark.parametrize(
    "text", ["arena.example.org", "ws://a", "https://", "https://a/b", "https://a b"]
)
def test_what_is_no_origin_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="expected an origin such as https://"):
        read_origin(text)


@pytest.mark.parametrize(
    ("host", "is_near"),
    [
        ("localhost", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
    ],
)
def test_what_is_loopback(host: str, is_near: bool) -> None:
    assert is_loopback(host) is is_near


# --- below which path ---


@pytest.mark.parametrize("path", ["/", "/arena/", "/a/b-2/", "/~ann/v1.0_x/"])
def test_a_base_path_begins_and_ends_with_a_slash(path: str) -> None:
    assert read_base_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        *("", "arena", "arena/", "/arena", "//", "/a//b/", "/../", "/a/./"),
        *("/a b/", "/ä/", "/a%20b/", "/a?b/", "/a#/", "/a/\n", "https://a.example/b/"),
    ],
)
def test_what_is_no_base_path_is_told_in_one_line(path: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_base_path(path)

    assert str(refused.value).startswith("expected a path such as /arena/")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("base", "path", "found"),
    [
        ("/", "/api/x.json?a=1", "/api/x.json?a=1"),
        ("/arena/", "/arena/api/x.json?a=1", "/api/x.json?a=1"),
        ("/arena/", "/arena/", "/"),
        ("/arena/", "/arena/arena/", "/arena/"),
        ("/arena/", "/arena", None),
        ("/arena/", "/arenas/", None),
        ("/arena/", "/", None),
        ("/arena/", "/api/x.json", None),
    ],
)
def test_what_is_below_a_base_path(base: str, path: str, found: str | None) -> None:
    assert below(base, path) == found
