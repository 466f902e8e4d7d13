"""The extra `[analysis]`: the one line that says what to install where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

from protocol.errors import UsageError

__all__ = ["need_analysis"]

_EXTRA = ("numpy", "scipy")
_NOT_INSTALLED = "numpy and scipy are not installed: pip install 'card-arena[analysis]'"


def need_analysis() -> None:
    """Raise `UsageError` unless numpy and scipy are there; call it before they are imported."""
    if any(find_spec(package) is None for package in _EXTRA):
        raise UsageError(_NOT_INSTALLED)
