"""Figures for Prometheus: the format, and that they tell no names."""

from __future__ import annotations

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from arena.web.metrics import Figures, exposition
from tests.support.host_views import host_view

FIGURES = Figures(
    version="1.2.3",
    here=3,
    away=1,
    matches=2,
    competitions=1,
    decisions=12_345,
    lag_s=0.25,
    viewers=7,
    strangers=0,
    requests={404: 1, 200: 5},
    failed=True,
)


def lines() -> list[str]:
    return exposition(FIGURES).decode().splitlines()


def test_every_line_is_as_prometheus_reads_it() -> None:
    text = exposition(FIGURES).decode()
    read = list(text_string_to_metric_families(text))

    assert text.endswith("\n")
    assert sum(len(family.samples) for family in read) == len(
        [line for line in lines() if not line.startswith("#")]
    )


def test_every_figure_has_a_kind_and_a_help_just_once() -> None:
    heads = [line.split()[1:3] for line in lines() if line.startswith("#")]
    names = {name for _, name in heads}

    assert len(heads) == 2 * len(names)
    assert names - {"process_resident_memory_bytes"} == {  # which only Linux tells
        "arena_info",
        "arena_bots",
        "arena_matches",
        "arena_competitions",
        "arena_decisions_total",
        "arena_lag_seconds_total",
        "arena_viewers",
        "arena_strangers",
        "arena_http_requests_total",
        "arena_database_failed",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
    }


def test_what_is_counted_is_there() -> None:
    told = lines()

    assert 'arena_info{version="1.2.3"} 1.0' in told
    assert 'arena_bots{state="here"} 3.0' in told
    assert "# TYPE arena_decisions_total counter" in told
    assert "arena_decisions_total 12345.0" in told
    assert "arena_lag_seconds_total 0.25" in told
    assert "# TYPE arena_viewers gauge" in told
    assert "arena_database_failed 1.0" in told
    requests = [line for line in told if line.startswith("arena_http_requests")]
    assert requests == [
        'arena_http_requests_total{code="200"} 5.0',
        'arena_http_requests_total{code="404"} 1.0',
    ]


def test_what_other_machines_do_is_counted_where_they_may_run_bots() -> None:
    views = [host_view("h1", own_bots=3), host_view("h2", state="working", own_bots=2)]
    views += [host_view("h3", state="draining"), host_view("h4", state="silent")]
    figures = msgspec.structs.replace(FIGURES, hosts=views, lost=2)
    told = exposition(figures).decode().splitlines()

    assert [line for line in told if line.startswith("arena_hosts{")] == [
        'arena_hosts{state="idle"} 1.0',
        'arena_hosts{state="working"} 1.0',
        'arena_hosts{state="draining"} 1.0',
        'arena_hosts{state="silent"} 1.0',
        'arena_hosts{state="unfit"} 0.0',
    ]
    assert "arena_host_cores 8.0" in told
    assert "arena_host_bots 5.0" in told
    assert "arena_host_lost_total 2.0" in told


def test_a_label_cannot_break_out_of_its_line() -> None:
    odd = msgspec.structs.replace(FIGURES, version='x"} 1\ny \\')

    assert r'arena_info{version="x\"} 1\ny \\"} 1.0' in exposition(odd).decode()
