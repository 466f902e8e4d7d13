from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from arena.cli._bus_options import bus_options, opened_bus, read_address
from arena.workers.bus import BusAddress
from protocol.errors import UsageError
from tests.support.nats_server import NatsServer, nats_server

__all__ = ["nats_server"]

Given = list[BusAddress | None]


@pytest.fixture
def given() -> Given:
    return []


@pytest.fixture
def command(given: Given) -> click.Command:
    @click.command
    @bus_options
    def take(bus: BusAddress | None) -> None:
        given.append(bus)

    return take


def test_the_options_are_one_address(command: click.Command, given: Given) -> None:
    words = ["--bus", "tls://b:4222", "--bus-key", "a.nk", "--bus-ca", "ca.pem"]
    CliRunner().invoke(command, words, catch_exceptions=False)

    assert given == [BusAddress("tls://b:4222", Path("a.nk"), Path("ca.pem"))]


def test_the_environment_says_it_too(command: click.Command, given: Given) -> None:
    variables = {"ARENA_BUS": "nats://b", "ARENA_BUS_KEY": "a.nk", "ARENA_BUS_CA": "ca.pem"}
    CliRunner().invoke(command, [], env=variables, catch_exceptions=False)

    assert given == [BusAddress("nats://b", Path("a.nk"), Path("ca.pem"))]


def test_without_them_there_is_no_bus(command: click.Command, given: Given) -> None:
    CliRunner().invoke(command, [], catch_exceptions=False)

    assert given == [None]


@pytest.mark.parametrize(
    "url", ["http://b:4222", "tls://", "tls://:4222", "tls://b:x", "nats://b:99999"]
)
def test_what_is_no_address_of_a_bus_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected tls://HOST:PORT"):
        read_address(url, None, None)


@pytest.mark.parametrize("option", ["--bus-key", "--bus-ca"])
def test_how_to_join_no_bus_is_refused(command: click.Command, given: Given, option: str) -> None:
    error = CliRunner().invoke(command, [option, "file"]).exception

    assert str(error) == f"expected --bus URL beside {option}"
    assert given == []


def test_a_section_without_a_url_is_refused(command: click.Command) -> None:
    defaults = {"bus": None, "bus_key": "a.nk", "bus_ca": None}
    error = CliRunner().invoke(command, [], default_map=defaults).exception

    assert str(error) == "expected url in [bus], beside key"


def test_a_key_in_the_environment_is_for_those_who_have_a_bus(
    command: click.Command, given: Given
) -> None:
    CliRunner().invoke(command, [], env={"ARENA_BUS_KEY": "a.nk"}, catch_exceptions=False)

    assert given == [None]


async def test_without_an_address_it_is_not_opened() -> None:
    with pytest.raises(UsageError, match="expected --bus"):
        async with opened_bus(None, "tester"):
            pytest.fail("it was opened")


async def test_it_is_open_until_the_block_ends(nats_server: NatsServer) -> None:
    async with opened_bus(nats_server.address("arena"), "tester") as bus:
        assert bus.is_up
    assert not bus.is_up
