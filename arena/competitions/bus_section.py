"""The table `[bus]` of a configuration: the bus by which hosts run bots."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

__all__ = ["BusSection"]


class BusSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the bus is, as the options --bus, --bus-key and --bus-ca say it.

    Attributes:
        url: `tls://HOST:PORT`; None for no bus.
        key: the file with the key of arenas, `arena.nk`.
        ca: the file with the certificate by which the bus is known, `ca.pem`.
    """

    url: Annotated[str, Meta(pattern="^(tls|nats)://.")] | None = None
    key: Annotated[str, Meta(min_length=1)] | None = None
    ca: Annotated[str, Meta(min_length=1)] | None = None
