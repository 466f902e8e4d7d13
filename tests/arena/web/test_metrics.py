"""Figures for Prometheus: the format, and that they tell no names."""

from __future__ import annotations

import re

from arena.web.metrics import Figures, Metric, exposition, metrics

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
LINE = re.compile(r"[a-z_]+(\{[a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*\})? -?[0-9.e+-]+")


def test_every_line_is_as_prometheus_reads_it() -> None:
    text = exposition(metrics(FIGURES))

    assert text.endswith("\n")
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or LINE.fullmatch(line), line


def test_every_figure_has_a_kind_and_a_help_just_once() -> None:
    lines = exposition(metrics(FIGURES)).splitlines()
    heads = [line.split()[1:3] for line in lines if line.startswith("#")]
    names = {name for _, name in heads}

    assert len(heads) == 2 * len(names)
    assert all(name.startswith(("arena_", "process_")) for name in names)


def test_what_is_counted_is_there() -> None:
    lines = exposition(metrics(FIGURES)).splitlines()

    assert 'arena_info{version="1.2.3"} 1' in lines
    assert 'arena_bots{state="here"} 3' in lines
    assert "# TYPE arena_decisions_total counter" in lines
    assert "arena_decisions_total 12345" in lines
    assert "arena_lag_seconds_total 0.25" in lines
    assert "# TYPE arena_viewers gauge" in lines
    assert "arena_database_failed 1" in lines
    requests = [line for line in lines if line.startswith("arena_http_requests")]
    assert requests == [
        'arena_http_requests_total{code="200"} 5',
        'arena_http_requests_total{code="404"} 1',
    ]


def test_a_label_cannot_break_out_of_its_line() -> None:
    metric = Metric("a", "b", [({"c": 'x"} 1\ny \\'}, 1)])

    assert exposition([metric]).splitlines()[-1] == r'a{c="x\"} 1\ny \\"} 1'
