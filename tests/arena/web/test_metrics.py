"""Figures for Prometheus: the format, and that they tell no names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from arena.web.metrics import ArenaFigures
from protocol.version import __version__
from tests.support.host_views import host_view

pytestmark = pytest.mark.virtual_time

FIGURES = [
    f'arena_info{{version="{__version__}"}} 1.0',
    'arena_bots{state="here"} 3.0',
    'arena_bots{state="away"} 1.0',
    'arena_http_requests_total{code="200"} 5.0',
    'arena_http_requests_total{code="404"} 1.0',
    "arena_decisions_total 12345.0",
    "arena_lag_seconds_total 0.25",
    "arena_matches 2.0",
    "arena_competitions 1.0",
    "arena_viewers 7.0",
    "arena_strangers 0.0",
    "arena_database_failed 1.0",
]
OF_HOSTS = [
    'arena_hosts{state="idle"} 1.0',
    'arena_hosts{state="working"} 1.0',
    'arena_hosts{state="draining"} 1.0',
    'arena_hosts{state="silent"} 1.0',
    'arena_hosts{state="unfit"} 0.0',
    "arena_host_cores 8.0",
    "arena_host_bots 5.0",
    "arena_host_lost_total 2.0",
]


class FakePlayers(list[str]):
    here = 3


def figures(**more: Any) -> str:
    """The figures of an arena whose database has failed."""
    arena: Any = SimpleNamespace(
        gateway=SimpleNamespace(players=FakePlayers("abcd"), throttle=()),
        referee=SimpleNamespace(
            tables=(1, 2), decisions=12_345, lag=SimpleNamespace(total_s=lambda now: 0.25)
        ),
        competitions=(1,),
        storage=SimpleNamespace(state="cannot write"),
        **{"host_directory": None, **more},
    )
    return ArenaFigures(arena, range(7), {404: 1, 200: 5}).text().decode()


async def test_every_figure_is_there_once_and_as_prometheus_reads_it() -> None:
    lines = figures().splitlines()
    heads = [line.split()[1:3] for line in lines if line.startswith("#")]
    names = {name for _, name in heads}
    read = list(text_string_to_metric_families(figures()))
    told = [line for line in lines if not line.startswith("#")]

    assert [line for line in told if not line.startswith("process_")] == FIGURES
    assert {line.split()[0] for line in told[len(FIGURES) :]} <= names
    assert len(heads) == 2 * len(names), "a kind and a help"
    assert "# TYPE arena_decisions_total counter" in lines
    assert "# TYPE arena_viewers gauge" in lines
    assert sum(len(family.samples) for family in read) == len(told)


async def test_what_other_machines_do_is_counted_where_they_may_run_bots() -> None:
    views = [host_view("h1", own_bots=3), host_view("h2", state="working", own_bots=2)]
    views += [host_view("h3", state="draining"), host_view("h4", state="silent")]
    told = figures(host_directory=SimpleNamespace(views=lambda: views, lost=2)).splitlines()

    assert [line for line in told if line.startswith("arena_host")] == OF_HOSTS
