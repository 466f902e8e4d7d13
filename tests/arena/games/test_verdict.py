"""The words that an offender is told."""

from __future__ import annotations

import msgspec
import pytest

from arena.games.verdict import (
    OUTAGE,
    UNCOUNTED,
    Finding,
    advice,
    out_of_clock_time,
    out_of_time,
    outage,
)
from protocol.messages import Ending, Limits, Mechanism, Verdict

LIMITS = Limits(
    decision_ms=1500, wall_ms=45_000, frame_bytes=65_536, memory_mib=1_256, processes=2_000
)
OFFENCES = [kind for kind in Ending if kind not in (Ending.COMPLETED, Ending.VOID)]  # J2


def found(kind: Ending, text: str = "why") -> Finding:
    return Finding(kind=kind, text=text, mechanism=Mechanism.WIRE)


def verdict(kind: Ending, text: str) -> Verdict:
    return Verdict(
        kind=kind,
        match="m",
        game="blackjack",
        bot="ann",
        seat=0,
        text=text,
        bank_ms=0,
        limits=LIMITS,
    )


# --- out of time ---


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        (
            (2140, 2000, 12, 0),
            "out of time: 2,140 ms for a decision (limit 2,000 ms, credit 12 ms), bank empty",
        ),
        (
            (2140.4, 2000.4, 11.6, 0.0),
            "out of time: 2,140 ms for a decision (limit 2,000 ms, credit 12 ms), bank empty",
        ),
        (
            (5_001.0, 5_000, 0.0, 56_000),
            "out of time: 5,001 ms for a decision (limit 5,000 ms, credit 0 ms), "
            "56,000 ms left in the bank",
        ),
        (
            (4_250, 4_000, 0, 0, "CPU"),
            "out of time: 4,250 ms of CPU for a decision (limit 4,000 ms, credit 0 ms), bank empty",
        ),
        (
            (30_001, 30_000, 0, None),
            "out of time: 30,001 ms for a decision (limit 30,000 ms, credit 0 ms)",
        ),
    ],
)
def test_J4_out_of_time_is_told_with_all_figures(
    figures: tuple[float, float, float, float | None], text: str
) -> None:
    assert out_of_time(*figures) == text


def test_J7_a_bank_of_clock_time_that_is_empty_is_told_with_all_figures() -> None:
    text = out_of_clock_time(9_000.4, 12, 1_500.3, 7_000.4, LIMITS)
    finding = Finding(kind=Ending.TIMEOUT, text=text, mechanism=Mechanism.WALL_CAP)

    assert text == (
        "out of time: 9,000 ms on the clock for a decision, of which 12 ms CPU time and 1,500 ms "
        "without a core; bank of clock time empty (7,000 of 120,000 ms were left)"
    )
    assert "drains a bank of 120,000 ms per match" in advice(finding, LIMITS)
    assert len(advice(finding, LIMITS)) < 120


# --- advice ---


@pytest.mark.parametrize("kind", OFFENCES)
def test_every_offence_has_one_line_of_advice(kind: Ending) -> None:
    line = advice(found(kind), LIMITS)

    assert line.strip()
    assert line.isprintable()
    assert len(line) < 120


def test_no_two_offences_have_the_same_advice() -> None:
    assert len({advice(found(kind), LIMITS) for kind in OFFENCES}) == len(OFFENCES)


@pytest.mark.parametrize("kind", [Ending.COMPLETED, Ending.VOID])
def test_who_has_done_nothing_needs_no_advice(kind: Ending) -> None:
    assert advice(found(kind), LIMITS) == ""


@pytest.mark.parametrize(
    ("kind", "figure"),
    [
        (Ending.TIMEOUT, "1,500 ms"),
        (Ending.OVERSIZE, "65,536 bytes"),
        (Ending.MEMORY, "1,256 MiB"),
        (Ending.PROCESSES, "2,000 processes"),
    ],
)
def test_advice_names_the_limit_in_force(kind: Ending, figure: str) -> None:
    assert figure in advice(found(kind), LIMITS)


@pytest.mark.parametrize("kind", [Ending.TIMEOUT, Ending.CPU])
def test_who_has_something_left_is_told_of_the_limit_of_one_decision(kind: Ending) -> None:
    text = out_of_time(15_001, 15_000, 0, 790)
    late = Finding(kind=kind, text=text, mechanism=Mechanism.WALL_CLOCK)

    assert "no decision may take longer than 15,000 ms" in advice(late, LIMITS)


def test_a_crash_whose_stderr_is_not_ours_is_looked_for_where_the_bot_runs() -> None:
    there = Finding(kind=Ending.CRASH, text="why", mechanism=Mechanism.WIRE)
    here = msgspec.structs.replace(there, stderr="Traceback")

    assert "where it runs" in advice(there, LIMITS)
    assert "the end of stderr" in advice(here, LIMITS)


def test_who_neither_computes_nor_answers_has_advice_of_its_own() -> None:
    stalls = Finding(kind=Ending.TIMEOUT, text="why", mechanism=Mechanism.WALL_CAP)
    line = advice(stalls, LIMITS)

    assert "45,000 ms" in line
    assert line != advice(found(Ending.TIMEOUT), LIMITS)
    assert line.isprintable()


# --- headlines ---


@pytest.mark.parametrize(
    ("kind", "text", "headline"),
    [
        (
            Ending.MEMORY,
            "memory 312 MiB > 256 MiB (sampled)",
            "eliminated: memory 312 MiB > 256 MiB (sampled)",
        ),
        (
            Ending.TIMEOUT,
            out_of_time(2140, 2000, 12, 0),
            "eliminated: out of time: 2,140 ms for a decision "
            "(limit 2,000 ms, credit 12 ms), bank empty",
        ),
        (Ending.CRASH, "crashed: exit status 1", "crashed: exit status 1"),
        (Ending.ABSENT, "did not come", "eliminated: did not come"),
    ],
)
def test_a_headline_says_what_happened(kind: Ending, text: str, headline: str) -> None:
    assert verdict(kind, text).headline == headline


def test_where_an_offence_was_noticed_may_know_better_what_to_do() -> None:
    known = msgspec.structs.replace(found(Ending.CRASH), advice="look at line 3")

    assert advice(known, LIMITS) == "look at line 3"


@pytest.mark.parametrize(
    ("names", "away"),
    [(("ann",), "ann was away"), (("ann", "ben"), "ann and ben were away at once")],
)
def test_J9_an_outage_says_who_was_away(names: tuple[str, ...], away: str) -> None:
    assert outage(names) == f"{OUTAGE}{away}{UNCOUNTED}"
