"""The entrance: its warning of a proxy that nobody trusts, and who comes to a closed door."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import Mock

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Request

from arena.referee.transport import Caller
from arena.server.entrance import Entrance

THROUGH_A_PROXY = {"X-Forwarded-For": "198.51.100.7"}


def fetched(entrance: Entrance, address: str, headers: dict[str, str]) -> None:
    """A request from there."""
    caller: Any = Mock(peer=f"{address}:4711", address=address, respond=lambda *answer: None)
    entrance.requested(cast(Caller, caller), Request("/", Headers(headers)))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_proxy_in_front_that_nobody_trusts_is_told_of_once(
    caplog: pytest.LogCaptureFixture, address: str
) -> None:
    entrance = Entrance()
    for _ in range(3):
        fetched(entrance, address, THROUGH_A_PROXY)

    [line] = caplog.messages
    assert line.startswith(f"a proxy at {address} seems to be in front of the arena")
    assert f"--trusted-proxy {address}" in line


@pytest.mark.parametrize(
    ("address", "headers", "trusted"),
    [
        ("127.0.0.1", {}, []),
        ("10.0.0.1", THROUGH_A_PROXY, []),
        ("127.0.0.1", THROUGH_A_PROXY, ["127.0.0.1"]),
    ],
)
def test_nothing_is_told_of_a_proxy_where_none_is_or_all_is_well(
    caplog: pytest.LogCaptureFixture, address: str, headers: dict[str, str], trusted: list[str]
) -> None:
    entrance = Entrance()
    entrance.proxies.trust(trusted)
    fetched(entrance, address, headers)

    assert caplog.messages == []


def test_who_hands_in_where_nothing_is_taken_is_told_so() -> None:
    answers: list[tuple[Any, ...]] = []
    caller: Any = Mock(
        peer="127.0.0.1:4711", address="127.0.0.1", respond=lambda *answer: answers.append(answer)
    )
    upgrade = Headers({"Connection": "Upgrade", "Upgrade": "websocket"})
    Entrance().requested(cast(Caller, caller), Request("/submit", upgrade))

    assert "nothing can be handed in here" in str(answers)
