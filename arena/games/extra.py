"""The extra `[analysis]`: the one line that says what to install where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

from protocol.errors import UsageError

__all__ = ["has_analysis", "need_analysis"]

_EXTRA = ("numpy", "scipy")
_NOT_INSTALLED = "numpy and scipy are not installed: pip install 'card-arena[analysis]'"


def has_analysis() -> bool:
    """Whether numpy and scipy are there."""
    return all(find_spec(package) is not None for package in _EXTRA)


def need_analysis() -> None:
    """Raise `UsageError` unless numpy and scipy are there; call it before they are imported."""
    if not has_analysis():
        raise UsageError(_NOT_INSTALLED)
