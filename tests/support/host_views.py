"""Hosts as an arena shows them."""

from __future__ import annotations

from typing import Any

from protocol.instructions import HostView

__all__ = ["host_view"]


def host_view(host: str, **about: Any) -> HostView:
    """An idle host with four cores, but for what is given."""
    usual: dict[str, Any] = {
        "state": "idle",
        "why": "",
        "cores": 4,
        "memory_mib": 8_000,
        "bots": 5,
        "own_bots": 0,
        "room": 6,
        "isolation": "bubblewrap",
        "languages": ("go", "python"),
        "lag_ms": 0.5,
        "version": "1.2.3",
    }
    return HostView(host, **{**usual, **about})
