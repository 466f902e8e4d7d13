"""The environment's proxy leads to arenas elsewhere, never to one on this machine."""

from __future__ import annotations

import pytest

from protocol.errors import UsageError
from protocol.proxy import proxy_to, through

FAR = "ws://far.example:7700"


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        (FAR, "http_proxy=http://p:1", "http://p:1"),
        (FAR, "http_proxy=http://p:1 https_proxy=http://q:2", "http://q:2"),
        (FAR, "all_proxy=p:3", "http://p:3"),
        ("wss://far.example/arena/", "http_proxy=http://p:1 all_proxy=http://q:2", "http://q:2"),
        (FAR, "all_proxy=http://p:3 no_proxy=far.example", None),
        (FAR, "http_proxy=", None),
        ("ws://127.0.0.1:7700", "all_proxy=http://p:3", None),
        ("ws://127.9.9.9", "http_proxy=http://p:3", None),
        ("ws://localhost:7700", "https_proxy=http://p:3", None),
        ("wss://[::1]:7700", "https_proxy=http://p:3", None),
        ("ws://0.0.0.0:7700", "http_proxy=http://p:3", None),
        ("ws://far:port", "http_proxy=http://p:3", None),
    ],
)
def test_which_proxy_leads_to_an_arena(
    monkeypatch: pytest.MonkeyPatch, url: str, environment: str, proxy: str | None
) -> None:
    for variable in environment.split():
        monkeypatch.setenv(*variable.split("=", 1))

    assert proxy_to(url) == proxy
    assert through(url) == ("" if proxy is None else f" through the proxy {proxy}")


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        ("ftp://me:secret@p:1", "expected a proxy such as .*, got ftp://p:1$"),
        (
            "socks5://me:secret@p:1",
            "the package python-socks for the proxy socks5://p:1; pip .*far",
        ),
    ],
)
def test_a_proxy_of_no_use_is_told(monkeypatch: pytest.MonkeyPatch, proxy: str, why: str) -> None:
    monkeypatch.setenv("all_proxy", proxy)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=why):
        proxy_to(FAR)
