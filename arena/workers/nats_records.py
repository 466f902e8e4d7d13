"""Results that are larger than a message of NATS: objects of the bucket of their worker."""

from __future__ import annotations

import base64
import hashlib

from nats.js.api import ObjectInfo
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError
from nats.js.object_store import ObjectStore

from arena.hosts.nats_connection import NatsConnection
from arena.workers.bus import BusDown

__all__ = ["LARGEST_IN_MESSAGE", "LARGEST_READ", "NatsRecords"]

LARGEST_IN_MESSAGE = 512 * 1024  # bytes; the server takes 1 MiB
LARGEST_READ = 300 << 20  # bytes; an arena refuses what has more than 256 MiB
KEPT_S = 7 * 24 * 3600.0  # what no arena has asked for


class NatsRecords:
    """The object store, by worker and attempt; methods raise `BusDown`."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection

    async def make(self, worker: str) -> None:
        """Have a bucket for a worker; once more does nothing."""
        await self._connection.streams(
            f"the records of {worker}",
            lambda streams: streams.create_object_store(_bucket(worker), ttl=KEPT_S),
        )

    async def put(self, worker: str, attempt: str, data: bytes) -> None:
        """Write, in the place of what was there."""
        await self._connection.streams(
            f"the record of {attempt}", lambda streams: _store(streams, worker).put(attempt, data)
        )

    async def get(self, worker: str, attempt: str) -> bytes:
        return await self._connection.streams(
            f"the record of {attempt}", lambda streams: _read(streams, worker, attempt)
        )

    async def remove(self, worker: str, attempt: str) -> None:
        await self._connection.streams(
            f"the record of {attempt}", lambda streams: _remove(streams, worker, attempt)
        )


def _bucket(worker: str) -> str:
    return f"records-{worker}"


def _stream(worker: str) -> str:
    return f"OBJ_{_bucket(worker)}"


def _store(streams: JetStreamContext, worker: str) -> ObjectStore:
    """The bucket, without the request by which nats-py sees whether it is there."""
    return ObjectStore(_bucket(worker), _stream(worker), streams)


async def _read(streams: JetStreamContext, worker: str, attempt: str) -> bytes:
    """Read an object part by part; of one that is too large only so much that this is seen.

    `ObjectStore.get` reads by a subscription, and waits for ever if a part is missing.
    """
    try:
        info = await _store(streams, worker).get_info(attempt)
        parts, sequence, size = [], 0, 0
        for _ in range(info.chunks or 0):
            part = await streams.get_msg(
                _stream(worker), sequence + 1, _parts(worker, info), direct=True, next=True
            )
            assert part.seq is not None, "direct reads say it"
            parts.append(part.data or b"")
            size += len(parts[-1])
            if size > LARGEST_READ:  # what its name says of its size is the worker's word
                return b"".join(parts)
            sequence = part.seq
    except NotFoundError:
        raise BusDown(f"the bus has lost the record of {attempt}") from None
    data = b"".join(parts)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
    if info.digest != f"SHA-256={digest}":
        raise BusDown(f"the bus has lost a part of the record of {attempt}")
    return data


async def _remove(streams: JetStreamContext, worker: str, attempt: str) -> None:
    """Remove an object and its name, of which `ObjectStore.delete` would leave a mark."""
    try:
        info = await _store(streams, worker).get_info(attempt)
    except NotFoundError:
        return
    await streams.purge_stream(_stream(worker), subject=_parts(worker, info))
    name = base64.urlsafe_b64encode(attempt.encode()).decode()
    await streams.purge_stream(_stream(worker), subject=f"$O.{_bucket(worker)}.M.{name}")


def _parts(worker: str, info: ObjectInfo) -> str:
    return f"$O.{_bucket(worker)}.C.{info.nuid}"
