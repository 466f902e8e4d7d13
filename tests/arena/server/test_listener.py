"""When a certificate is looked at again; what is spoken with it is in tests/e2e/test_tls.py."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from arena.server.listener import Certificate, Listeners
from protocol.errors import Unreachable, UsageError
from tests.e2e.test_tls import make


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return make(tmp_path, "arena")


@pytest.fixture
def renew(tmp_path: Path, files: tuple[Path, Path]) -> Callable[[Path], None]:
    """Replace one of the files by that of another pair."""
    others = make(tmp_path, "other")

    def call(file: Path) -> None:
        os.replace(others[files.index(file)], file)

    return call


def test_a_renewed_pair_is_taken_up_once_both_files_are_there(
    files: tuple[Path, Path], renew: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    certificate = Certificate(*files)
    first = certificate.current()
    renew(files[0])
    assert [certificate.current() for _ in range(3)] == [first] * 3
    renew(files[1])

    assert certificate.current() is not first
    assert [record.getMessage() for record in caplog.records] == [
        f"the certificate stays as it was: expected the private key of {files[0]}, got {files[1]}",
        f"the certificate was renewed: {files[0]}",
    ]


@pytest.mark.parametrize("left", ["", "-----BEGIN PRIVATE KEY-----\nMIG", None])
def test_a_file_that_is_half_written_or_gone_is_told_once(
    files: tuple[Path, Path], caplog: pytest.LogCaptureFixture, left: str | None
) -> None:
    certificate = Certificate(*files)
    first, whole = certificate.current(), files[1].read_text()
    files[1].unlink()
    if left is not None:
        files[1].write_text(left)
    for _ in range(2):
        assert certificate.current() is first
    [said] = [record.getMessage() for record in caplog.records]
    files[1].write_text(whole)

    assert said.startswith("the certificate stays as it was: ")
    assert certificate.current() is not first


async def test_a_machine_without_free_ports_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def create_server(*_: object, **options: object) -> None:
        raise OSError(errno.EADDRINUSE, "address already in use")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_server", create_server)
    with pytest.raises(Unreachable, match="cannot listen on h:0: this machine has no free port"):
        await Listeners().open(asyncio.Protocol, "h", 0)


def test_what_is_no_good_at_first_is_refused(files: tuple[Path, Path]) -> None:
    files[1].write_text("nothing")

    with pytest.raises(UsageError, match="expected a private key in PEM"):
        Certificate(*files)
