from __future__ import annotations

import click
import msgspec
import pytest
from click.testing import CliRunner

from arena.cli._limit_options import LimitsCommand, described, limits_options
from protocol.messages import Limits


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


def test_a_description_may_take_several_lines() -> None:
    class Two(msgspec.Struct):
        """Two.

        Attributes:
            one: the first:
                it goes on.
            two: the second.
        """

        one: int
        two: int

    assert described(Two) == {"one": "The first: it goes on.", "two": "The second."}


def test_a_struct_without_words() -> None:
    class Bare(msgspec.Struct):
        one: int

    assert described(Bare) == {}


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
