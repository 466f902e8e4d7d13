"""Options that several commands share: addresses, limits and the bus."""

from __future__ import annotations

import socket
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from arena.cli import _serving
from arena.cli._bus_options import bus_options, no_bus_options, read_address
from arena.cli._limit_options import LimitsCommand, described, limits_options
from arena.cli._serving import check_proxies, page_at, urls_for_others
from arena.competitions.config import ServeSection
from arena.hosts.bus import BusAddress
from protocol.errors import UsageError
from protocol.messages import Limits
from tests.support.nats_server import nats_server


@pytest.mark.parametrize(
    ("listens", "name", "v4", "reached"),
    [
        ("ws://0.0.0.0:7700", "desk", "10.1.2.3", ("ws://desk:7700", "ws://10.1.2.3:7700")),
        ("wss://0.0.0.0:81", "desk", "10.1.2.3", ("wss://desk:81", "wss://10.1.2.3:81")),
        ("ws://[::]:7700", "desk", "10.1.2.3", ("ws://desk:7700", "ws://[fd00::7]:7700")),
        ("ws://:7700", "desk", "10.1.2.3", ("ws://desk:7700", "ws://10.1.2.3:7700")),
        ("ws://0.0.0.0:1", "desk", "", ("ws://desk:1",)),
        ("ws://0.0.0.0:1", "localhost.localdomain", "10.1.2.3", ("ws://10.1.2.3:1",)),
        ("ws://0.0.0.0:1", "localhost", "", ()),
        # On one interface the arena's own address is enough.
        ("ws://127.0.0.1:7700", "desk", "10.1.2.3", ()),
        ("ws://[::1]:1", "desk", "10.1.2.3", ()),
        ("ws://10.1.2.3:1", "desk", "10.1.2.3", ()),
        ("wss://arena.school:1", "desk", "10.1.2.3", ()),
    ],
)
def test_others_reach_it_by_this_machines_name_and_address(
    monkeypatch: pytest.MonkeyPatch, listens: str, name: str, v4: str, reached: tuple[str, ...]
) -> None:
    addresses = {socket.AF_INET: v4, socket.AF_INET6: "fd00::7"}
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    monkeypatch.setattr(_serving, "_outward", addresses.__getitem__)

    assert urls_for_others(listens) == reached


def test_the_address_that_leads_out_is_one_that_can_be_listened_on() -> None:
    address = _serving._outward(socket.AF_INET)
    with socket.socket() as here:
        here.bind((address, 0))
        bound, _ = here.getsockname()

    assert bound == (address or "0.0.0.0"), "it is empty on a machine without a network"


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("ws://127.0.0.1:7700", "http://127.0.0.1:7700"),
        ("wss://arena.example.org:7700", "https://arena.example.org:7700"),
        ("ws://[::1]:7700", "http://[::1]:7700"),
        ("ws://0.0.0.0:7700", "http://localhost:7700"),
        ("wss://[::]:7700", "https://localhost:7700"),
        ("ws://127.0.0.1:7700/arena/", "http://127.0.0.1:7700/arena/"),
        ("wss://0.0.0.0:7700/arena/", "https://localhost:7700/arena/"),
    ],
)
def test_a_browser_on_this_machine_finds_the_page(url: str, page: str) -> None:
    assert page_at(url) == page


# --- who needs a token ---


@pytest.mark.parametrize(
    ("host", "proxies", "is_open", "requires"),
    [
        ("127.0.0.1", (), False, False),
        ("localhost", (), False, False),
        ("0.0.0.0", (), False, True),
        ("127.0.0.1", ("127.0.0.1",), False, True),
        ("::1", ("10.0.0.0/8",), False, True),
        ("127.0.0.1", ("127.0.0.1",), True, False),
        ("0.0.0.0", ("127.0.0.1",), True, False),
    ],
)
def test_a_token_is_needed_unless_all_come_from_this_machine(
    host: str, proxies: tuple[str, ...], is_open: bool, requires: bool
) -> None:
    section = ServeSection(host=host, open=is_open, trusted_proxy=list(proxies))

    assert section.requires_token is requires


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("127.0.0.1", "with --trusted-proxy 127.0.0.1 everybody"),
        ("127.0.0.2", "with --trusted-proxy 127.0.0.1 everybody"),
        ("::1", "with --trusted-proxy ::1 everybody"),
        ("localhost", "with --trusted-proxy 127.0.0.1 --trusted-proxy ::1 everybody"),
    ],
)
def test_a_proxy_on_this_machine_is_named_as_it_connects(host: str, named: str) -> None:
    section = ServeSection(host=host, origin=["https://arena.example.org"])

    with pytest.raises(UsageError, match=f"this machine seem to be on {host}: {named}"):
        check_proxies(section)


@click.command(cls=LimitsCommand)
@click.option("--other", help="Something else.")
@limits_options
def command(other: str | None, limits: Limits) -> None:
    """Print the limits."""
    click.echo(msgspec.json.encode(limits))


def limits_of(*words: str) -> Limits:
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return msgspec.json.decode(done.output, type=Limits)


def test_without_flags_the_limits_are_the_defaults() -> None:
    assert limits_of() == Limits()


@pytest.mark.parametrize("name", Limits.__struct_fields__)
def test_every_limit_has_a_flag(name: str) -> None:
    changed = getattr(Limits(), name) + 1

    assert limits_of(f"--{name.replace('_', '-')}", str(changed)) == msgspec.structs.replace(
        Limits(), **{name: changed}
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--decision-ms", "0"),
        ("--tables", "4097"),
        ("--memory-mib", "1.5"),
        ("--memory-mib", "true"),
    ],
    ids=" ".join,
)
def test_what_is_out_of_range_is_refused(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(command, words)

    assert done.exit_code == 2
    assert words[0] in done.output


def test_every_limit_is_described_where_it_is_defined() -> None:
    assert list(described(Limits)) == list(Limits.__struct_fields__)
    assert described(Limits)["start_ms"] == (
        "From `match` to `ready`, without the credit; of a launched bot in CPU time, and so from "
        "its launch to `hello`, too."
    )


class Bare(msgspec.Struct):
    one: int


class Two(msgspec.Struct):
    """Two.

    Attributes:
        one: the first:
            it goes on.
        two: the second.
    """

    one: int
    two: int


@pytest.mark.parametrize(
    ("struct", "words"),
    [(Two, {"one": "The first: it goes on.", "two": "The second."}), (Bare, {})],
)
def test_a_description_may_take_several_lines_or_none(
    struct: type[msgspec.Struct], words: dict[str, str]
) -> None:
    assert described(struct) == words


def test_limits_have_a_section_of_their_own_in_the_help() -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    options, limits = text.split("\nLimits:\n")

    assert "--other" in options
    assert "--help" in options
    assert "--other" not in limits
    for field in msgspec.structs.fields(Limits):
        flag = f"--{field.name.replace('_', '-')} N"
        assert flag in limits
        assert flag not in options
        assert f"default: {field.default}" in " ".join(limits.split())


__all__ = ["nats_server"]


@click.command
@bus_options
def take(bus: BusAddress | None) -> None:
    """Print the address."""
    click.echo(repr(bus))


@pytest.mark.parametrize(
    ("words", "environment", "address"),
    [
        (
            ["--bus", "tls://b:4222", "--bus-key", "a.nk", "--bus-ca", "ca.pem"],
            {},
            BusAddress("tls://b:4222", Path("a.nk"), Path("ca.pem")),
        ),
        (
            [],
            {"ARENA_BUS": "nats://b", "ARENA_BUS_KEY": "a.nk", "ARENA_BUS_CA": "ca.pem"},
            BusAddress("nats://b", Path("a.nk"), Path("ca.pem")),
        ),
        ([], {}, None),
        ([], {"ARENA_BUS_KEY": "a.nk"}, None),  # it is for those who have a bus
    ],
    ids=["options", "environment", "none", "a key alone"],
)
def test_the_options_are_one_address(
    words: list[str], environment: dict[str, str], address: BusAddress | None
) -> None:
    done = CliRunner().invoke(take, words, env=environment, catch_exceptions=False)

    assert done.output == f"{address!r}\n"


@pytest.mark.parametrize(
    "url", ["http://b:4222", "tls://", "tls://:4222", "tls://b:x", "nats://b:99999"]
)
def test_what_is_no_address_of_a_bus_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected tls://HOST:PORT"):
        read_address(url, None, None)


@pytest.mark.parametrize(
    ("words", "defaults", "said"),
    [
        (["--bus-key", "file"], {}, "expected --bus URL beside --bus-key"),
        (["--bus-ca", "file"], {}, "expected --bus URL beside --bus-ca"),
        ([], {"bus": None, "bus_key": "a.nk"}, "expected url in [bus], beside key"),
    ],
)
def test_how_to_join_no_bus_is_refused(
    words: list[str], defaults: dict[str, str | None], said: str
) -> None:
    done = CliRunner().invoke(take, words, default_map=defaults)

    assert (str(done.exception), done.output) == (said, "")


def test_where_all_is_played_here_the_environment_names_no_bus() -> None:
    plays_here = click.command(no_bus_options(lambda: click.echo("played")))
    done = CliRunner().invoke(plays_here, env={"ARENA_BUS": "nats://b", "ARENA_BUS_KEY": "a.nk"})

    assert (done.exit_code, done.output) == (0, "played\n")
