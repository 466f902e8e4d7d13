"""By which addresses others reach an arena; of the network only a socket's address is asked."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from arena.cli import _addresses
from arena.cli._addresses import Endpoint, page_at, urls_for_others
from protocol.errors import UsageError

Called = Callable[..., None]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Called:
    """Give this machine a name, and addresses on the interface that leads out."""

    def call(name: str = "desk", v4: str = "", v6: str = "") -> None:
        addresses = {socket.AF_INET: v4, socket.AF_INET6: v6}
        monkeypatch.setattr(socket, "gethostname", lambda: name)
        monkeypatch.setattr(_addresses, "_outward", addresses.__getitem__)

    return call


@pytest.mark.parametrize(
    ("listens", "reached"),
    [
        ("ws://0.0.0.0:7700", ("ws://desk:7700", "ws://10.1.2.3:7700")),
        ("wss://0.0.0.0:81", ("wss://desk:81", "wss://10.1.2.3:81")),
        ("ws://[::]:7700", ("ws://desk:7700", "ws://[fd00::7]:7700")),
        ("ws://:7700", ("ws://desk:7700", "ws://10.1.2.3:7700")),
    ],
)
def test_on_all_interfaces_it_is_this_machines_name_and_address(
    called: Called, listens: str, reached: tuple[str, ...]
) -> None:
    called(v4="10.1.2.3", v6="fd00::7")

    assert urls_for_others(listens) == reached


@pytest.mark.parametrize(
    "url", ["ws://127.0.0.1:7700", "ws://[::1]:1", "ws://10.1.2.3:1", "wss://arena.school:1"]
)
def test_on_one_interface_the_arenas_own_address_is_enough(called: Called, url: str) -> None:
    called(v4="10.1.2.3")

    assert urls_for_others(url) == ()


def test_without_a_network_or_a_name_only_what_there_is(called: Called) -> None:
    called(v4="")
    assert urls_for_others("ws://0.0.0.0:1") == ("ws://desk:1",)

    called("localhost.localdomain", v4="10.1.2.3")
    assert urls_for_others("ws://0.0.0.0:1") == ("ws://10.1.2.3:1",)

    called("localhost")
    assert urls_for_others("ws://0.0.0.0:1") == ()


def test_the_address_that_leads_out_is_one_that_can_be_listened_on() -> None:
    address = _addresses._outward(socket.AF_INET)
    with socket.socket() as here:
        here.bind((address, 0))
        bound, _ = here.getsockname()

    assert bound == (address or "0.0.0.0"), "it is empty on a machine without a network"


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("ws://127.0.0.1:7700", "http://127.0.0.1:7700"),
        ("wss://arena.example.org:7700", "https://arena.example.org:7700"),
        ("ws://[::1]:7700", "http://[::1]:7700"),
        ("ws://0.0.0.0:7700", "http://localhost:7700"),
        ("wss://[::]:7700", "https://localhost:7700"),
        ("ws://127.0.0.1:7700/arena/", "http://127.0.0.1:7700/arena/"),
        ("wss://0.0.0.0:7700/arena/", "https://localhost:7700/arena/"),
    ],
)
def test_a_browser_on_this_machine_finds_the_page(url: str, page: str) -> None:
    assert page_at(url) == page


# --- who needs a token ---


@pytest.mark.parametrize(
    ("host", "proxies", "is_open", "requires"),
    [
        ("127.0.0.1", (), False, False),
        ("localhost", (), False, False),
        ("0.0.0.0", (), False, True),
        ("127.0.0.1", ("127.0.0.1",), False, True),
        ("::1", ("10.0.0.0/8",), False, True),
        ("127.0.0.1", ("127.0.0.1",), True, False),
        ("0.0.0.0", ("127.0.0.1",), True, False),
    ],
)
def test_a_token_is_needed_unless_all_come_from_this_machine(
    host: str, proxies: tuple[str, ...], is_open: bool, requires: bool
) -> None:
    endpoint = Endpoint(host, 0, is_open, False, None, (), True, (), proxies)

    assert endpoint.requires_token is requires


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("127.0.0.1", "--trusted-proxy 127.0.0.1 has"),
        ("127.0.0.2", "--trusted-proxy 127.0.0.1 has"),
        ("::1", "--trusted-proxy ::1 has"),
        ("localhost", "--trusted-proxy 127.0.0.1 --trusted-proxy ::1 has"),
    ],
)
def test_a_proxy_on_this_machine_is_named_as_it_connects(host: str, named: str) -> None:
    origins = ("https://arena.example.org",)
    endpoint = Endpoint(host, 0, False, False, None, (), True, origins, ())

    with pytest.raises(UsageError, match=f"this machine seem to be on {host}: {named}"):
        endpoint.check()
