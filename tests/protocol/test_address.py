"""The address of an arena's page leads to it, and the environment's proxy to arenas elsewhere."""

from __future__ import annotations

import pytest

from protocol.address import page_url, proxy_to, through, websocket_url
from protocol.errors import UsageError

FAR = "ws://far.example:7700"


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        (FAR, "no_proxy=near.example", ""),
        (FAR, "http_proxy=http://p:1", "http://p:1"),
        (FAR, "http_proxy=http://p:1 https_proxy=http://q:2", "http://q:2"),
        (FAR, "all_proxy=p:3", "http://p:3"),
        ("wss://far.example/arena/", "http_proxy=http://p:1 all_proxy=http://q:2", "http://q:2"),
        (FAR, "all_proxy=http://p:3 no_proxy=far.example", ""),
        ("ws://127.0.0.1:7700", "all_proxy=http://p:3", ""),
        ("ws://localhost.:7700", "https_proxy=http://p:3", ""),
        ("wss://[::ffff:127.0.0.1]:7700", "https_proxy=http://p:3", ""),
        ("ws://0.0.0.0:7700", "http_proxy=http://p:3", ""),
        ("ws://far:port", "http_proxy=http://p:3", ""),
        (FAR, "all_proxy=ftp://me:secret@p:1", "expected a proxy such as .*, got ftp://p:1$"),
        (
            FAR,
            "all_proxy=http://me:secret@p:port",
            "expected a proxy such as .*, got http://p:port$",
        ),
        (FAR, "all_proxy=http://me:secret@[::1", "expected a proxy such as .*, got http://\\[::1$"),
        (FAR, "all_proxy=http://me:secret@", "expected a proxy such as .*, got http://$"),
        (FAR, "all_proxy=socks5://me:secret@p:1", "python-socks for the proxy socks5://p:1; "),
    ],
)
def test_which_proxy_leads_to_an_arena(
    monkeypatch: pytest.MonkeyPatch, url: str, environment: str, proxy: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for variable in environment.split():
        monkeypatch.setenv(*variable.split("=", 1))
    if "secret" in environment:
        with pytest.raises(UsageError, match=proxy):
            proxy_to(url)
    else:
        assert (proxy_to(url) or "", through(url)) == (
            proxy,
            proxy and f" through the proxy {proxy}",
        )


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://arena:7700", "ws://arena:7700"),
        ("HTTPS://arena/cards/", "wss://arena/cards/"),
        ("http://arena:7700/#/m/akq-1", "ws://arena:7700/"),
        ("http://arena:7700/docs/protocol/README.md", "ws://arena:7700/"),
        ("https://docs.arena/cards/docs?q=gin#rules", "wss://docs.arena/cards/"),
        ("https://arena/cards/index.html", "wss://arena/cards/"),
        ("http://arena:7700/?theme=dark", "ws://arena:7700/"),
        ("https://arena/docs-of-ours/", "wss://arena/docs-of-ours/"),
        (" https://arena\n", "wss://arena"),
        ("wss://arena", "wss://arena"),
        ("arena", "arena"),
        ("", ""),
    ],
)
def test_the_address_of_the_page_is_as_good(url: str, address: str) -> None:
    assert websocket_url(url) == address


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("ws://127.0.0.1:7700", "http://127.0.0.1:7700"),
        ("wss://ann:secret@school.example/arena/", "https://school.example/arena"),
    ],
)
def test_the_page_of_an_arena_is_beside_it(url: str, page: str) -> None:
    assert page_url(url) == page
