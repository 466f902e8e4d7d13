"""A link between an arena and a host on which nobody answers."""

from __future__ import annotations

__all__ = ["SilentLink"]


class SilentLink:
    """One end of it; `told` is what was said there."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def tell(self, message: object) -> None:
        self.told.append(message)

    def carry(self, piece: bytes) -> None: ...

    def cut(self) -> None: ...
