"""Where a request comes from: only a trusted proxy may say so, and only of its own clients."""

from __future__ import annotations

import pytest
from websockets.datastructures import Headers

from arena.server.origins import Proxies, read_network
from protocol.errors import UsageError


def origin(peer: str, *said: str, trusted: tuple[str, ...] = ("127.0.0.1",)) -> str:
    """Where a connection from `peer` is counted, whose request has these headers."""
    proxies, headers = Proxies(), Headers()
    proxies.trust(trusted)
    for line in said:
        headers["X-Forwarded-For"] = line
    return proxies.origin(peer, headers)


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        (["198.51.100.7"], "198.51.100.7"),
        (["10.9.9.9, 198.51.100.7"], "198.51.100.7"),
        (["10.9.9.9", "198.51.100.7"], "198.51.100.7"),
        (["10.9.9.9,198.51.100.7 , 127.0.0.1"], "198.51.100.7"),
        (["198.51.100.7", "127.0.0.1, 127.0.0.1"], "198.51.100.7"),
        (["127.0.0.1"], "127.0.0.1"),
        ([], "127.0.0.1"),
    ],
)
def test_the_last_address_that_is_not_trusted_counts(said: list[str], counted: str) -> None:
    assert origin("127.0.0.1", *said) == counted


@pytest.mark.parametrize(
    ("peer", "said", "is_https"),
    [
        ("127.0.0.1", ["https"], True),
        ("127.0.0.1", ["http"], False),
        ("127.0.0.1", [], False),
        ("127.0.0.1", ["https", "http"], False),
        ("198.51.100.7", ["https"], False),
        ("?", ["https"], False),
    ],
)
def test_who_is_trusted_says_whether_it_was_spoken_to_over_tls(
    peer: str, said: list[str], is_https: bool
) -> None:
    proxies, headers = Proxies(), Headers()
    proxies.trust(("127.0.0.1",))
    for line in said:
        headers["X-Forwarded-Proto"] = line

    assert proxies.is_https(peer, headers) is is_https


def test_whoever_is_not_trusted_speaks_for_itself_only() -> None:
    assert origin("198.51.100.7", "10.0.0.1") == "198.51.100.7"
    assert origin("127.0.0.1", "10.0.0.1", trusted=()) == "127.0.0.1"


def test_networks_of_proxies_one_behind_another() -> None:
    trusted = ("10.0.0.0/8", "fd00::/8")

    assert origin("10.1.1.1", "7.7.7.7, 10.2.2.2", trusted=trusted) == "7.7.7.7"
    assert origin("fd00::1", "7.7.7.7, fd00::2", trusted=trusted) == "7.7.7.7"


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        ("198.51.100.7:4711", "198.51.100.7"),
        ("[2001:db8:1:2:3::4]:4711", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2:3::4]", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::1"),
        ("[fe80::1%eth0]:80", "fe80::1"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("[::1]:80", "::1"),
    ],
)
def test_an_address_in_any_clothes(said: str, counted: str) -> None:
    assert origin("127.0.0.1", said) == counted


@pytest.mark.parametrize(
    "said", ["", "unknown", "_hidden", "198.51.100.7,", "1.2.3", "1.2.3.4.5", "[::1", "1" * 5000]
)  # fmt: skip
def test_what_is_no_address_counts_as_the_proxy_that_passed_it_on(said: str) -> None:
    assert origin("127.0.0.1", said) == "127.0.0.1"
    assert origin("127.0.0.1", f"{said}, 10.0.0.1", trusted=("127.0.0.1", "10.0.0.1")) == "10.0.0.1"


def test_the_proxy_itself_may_come_as_ipv4_in_ipv6() -> None:
    assert origin("::ffff:127.0.0.1", "198.51.100.7") == "198.51.100.7"


def test_before_its_request_a_connection_through_a_proxy_is_counted_alone() -> None:
    proxies = Proxies()
    proxies.trust(["127.0.0.1"])

    assert proxies.before("127.0.0.1", 4711) != proxies.before("127.0.0.1", 4712)
    assert proxies.before("10.0.0.1", 4711) == proxies.before("10.0.0.1", 4712)


@pytest.mark.parametrize("trusted", ["::ffff:127.0.0.1", "::ffff:0:0/96", "::ffff:127.0.0.0/104"])
def test_IPv4_in_IPv6_is_trusted_as_IPv4(trusted: str) -> None:
    assert origin("127.0.0.1", "7.7.7.7", trusted=(trusted,)) == "7.7.7.7"
    assert origin("::ffff:127.0.0.1", "7.7.7.7", trusted=(trusted,)) == "7.7.7.7"
    assert origin("fd00::1", "7.7.7.7", trusted=(trusted,)) == "fd00::/64"


@pytest.mark.parametrize(
    ("text", "meant"), [("127.0.0.1/8", "127.0.0.0/8"), ("fd00::1/8", "fd00::/8")]
)
def test_a_network_that_is_named_by_one_of_its_addresses(text: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"; the network that it is in is {meant}$"):
        read_network(text)


@pytest.mark.parametrize("text", ["", "localhost", "10.0.0.1/8", "1.2.3.4:80", "::1/x"])
def test_what_is_neither_an_address_nor_a_network(text: str) -> None:
    with pytest.raises(UsageError, match=r"^expected a proxy's address or network") as why:
        read_network(text)

    assert "\n" not in str(why.value)
