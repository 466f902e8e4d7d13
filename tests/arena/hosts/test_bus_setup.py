"""The folder of a bus; that a server takes it is shown by `test_nats_bus.py`."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from arena.hosts.bus_setup import set_up
from arena.hosts.nats_connection import seed_of
from protocol.errors import UsageError


def test_what_is_added_or_removed_changes_that_alone(tmp_path: Path) -> None:
    files = set_up(tmp_path, ["arena.example.org"], ["h1"])
    files.server_conf.write_text("# edited")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    set_up(tmp_path, [], ["h2"])
    after = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert after.keys() - before.keys() == {"h2.nk"}
    assert [name for name in before if before[name] != after[name]] == ["users.conf"]
    assert files.hosts() == ["h1", "h2"]

    set_up(tmp_path, ["192.0.2.1", "arena.example.org"], [])
    assert files.addresses() == ["arena.example.org", "192.0.2.1"]
    assert files.ca.read_bytes() == before[files.ca.name]

    files.key("h1").unlink()
    set_up(tmp_path, [], [])
    assert "arena.host.h1" not in files.users_conf.read_text()
    assert "arena.host.h2" in files.users_conf.read_text()


def test_what_is_secret_is_for_its_owner_alone(tmp_path: Path) -> None:
    set_up(tmp_path, ["localhost"], ["h1"])

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}

    secret = {name for name, mode in modes.items() if mode == 0o600}
    assert secret == {"arena.nk", "ca-key.pem", "server-key.pem", "h1.nk"}


@pytest.mark.parametrize(
    ("addresses", "name", "why"),
    [
        *(
            (["localhost"], name, "expected a name of at most")
            for name in ("arena", "a.b", "h 1", "h*", "", "ä", "../h", "h" * 33)
        ),
        ([], "h1", "expected --address"),
    ],
)
def test_what_is_no_name_is_refused(
    tmp_path: Path, addresses: list[str], name: str, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        set_up(tmp_path / "bus", addresses, [name])

    assert not (tmp_path / "bus").exists()


@pytest.mark.parametrize("text", ["", "# a comment alone\n", "no key\n", "SUAAAA\n"])
def test_a_file_without_a_key_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "h1.nk"
    with pytest.raises(UsageError, match="cannot read"):
        seed_of(file)
    file.write_text(text)
    with pytest.raises(UsageError, match="expected a key"):
        seed_of(file)
