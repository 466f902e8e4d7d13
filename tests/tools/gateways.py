"""What would connected bots cost on several gateways? `python -m tests.tools.gateways` simulates it.

A gateway is a process that holds sockets and referees; NATS is between gateways. A match of two
bots is refereed by the gateway of one of them, so a decision of the other may cross: its question
goes by one message to the other gateway, its answer by one back. Gateways are queues with one
server each. A bot answers after its link and its thinking, and has one match after another.

The page `arena/workers/many_machines.md` quotes what is printed. The figures are those of `Costs`,
which were measured on two noisy cores in 2026. No part of CI.
"""

from __future__ import annotations

import argparse
import heapq
import random
import statistics
from collections.abc import Iterator
from itertools import count
from math import ceil

import msgspec

__all__ = ["Costs", "Load", "NeededMachines", "Simulated", "main", "needed", "simulate"]

_FULL = 0.6  # of a core; the queue grows fast beyond it, as the simulation shows
_FILES = 60_000  # of the 65,536 that `LimitNOFILE` of the manual allows
_SIMULATED_GATEWAYS = 4  # enough: all are alike
_SECONDS, _WARM_S = 6.0, 1.0
_SIZES = (200, 400, 600, 800, 1000, 1200)
_SEATS = 2
_GIB = 1 << 20  # in KiB


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """What things cost, measured.

    Attributes:
        decision_us: CPU time of a gateway for a decision where each bot has one match: `arena bench
            matches` and `tables`.
        idle_us_per_s: of an idle bot, for its pings: `arena bench --idle 3000`.
        idle_kib: memory of an idle bot.
        match_kib: memory of a match that is played.
        message_us: CPU time of a gateway to send or receive one message by nats-py.
        server_us: CPU time of nats-server for a message.
        crossing_ms: on its way between two gateways, one way.
    """

    decision_us: float = 65.0
    idle_us_per_s: float = 15.0
    idle_kib: float = 9.2
    match_kib: float = 6.0
    message_us: float = 9.0
    server_us: float = 3.5
    crossing_ms: float = 0.2


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How bots play: with a link of `link_ms` each way, and `think_ms` for an answer."""

    link_ms: float = 20.0
    think_ms: float = 5.0


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """Gateways with so many bots each, all of them playing.

    Attributes:
        busy: the share of its core that a gateway used.
        turn_ms, late_ms: the arena's part of a turn, from an answer's arrival to the next question:
            the median and the 99th percentile.
        messages_per_s: of one gateway to and from NATS.
    """

    bots: int
    decisions_per_s: float
    busy: float
    turn_ms: float
    late_ms: float
    messages_per_s: float


class _Gateway:
    """A process that does one thing after another."""

    def __init__(self) -> None:
        self.free_at = self.worked_s = 0.0
        self.messages = 0

    def does(self, at: float, work_s: float) -> float:
        """When work that arrives at a time is done."""
        self.free_at = max(self.free_at, at) + work_s
        self.worked_s += work_s
        return self.free_at


def simulate(
    bots: int, gateways: int, costs: Costs, load: Load, *, seed: int = 0, seconds: float = _SECONDS
) -> Simulated:
    """Let so many bots on each of `gateways` play; a few of the gateways stand for all."""
    draw = random.Random(seed)
    some = [_Gateway() for _ in range(min(gateways, _SIMULATED_GATEWAYS))]
    crosses = 1 - 1 / gateways
    turns: list[float] = []
    numbers = count()
    # When it comes where, since when the turn lasts, and whose match it is: an answer from a bot,
    # or, if that gateway is not the match's, what crosses from there.
    coming: list[tuple[float, int, _Gateway, float, _Gateway]] = []

    def ask(at: float, home: _Gateway) -> None:
        """Ask a seat of a match: one of two is on another gateway, if pairs are drawn freely."""
        is_away = len(some) > 1 and draw.random() < crosses * (_SEATS - 1) / _SEATS
        near = draw.choice([each for each in some if each is not home]) if is_away else home
        way_s = 2 * load.link_ms + draw.expovariate(1 / load.think_ms)
        at += way_s / 1000
        heapq.heappush(coming, (at, next(numbers), near, at, home))

    for home in some:
        for _ in range(bots // _SEATS):
            ask(draw.random() * 2 * load.link_ms / 1000, home)
    until = _WARM_S + seconds
    crossing_s, message_s = costs.crossing_ms / 1000, costs.message_us / 1e6
    while coming[0][0] < until:
        at, _, here, since, home = heapq.heappop(coming)
        # Half of the work is that of the socket, half that of the referee.
        half_s = costs.decision_us / 2 / 1e6 * draw.expovariate(1.0)
        if here is not home:  # each message is sent by one gateway and received by another
            done = here.does(at, half_s + 2 * message_s)
            here.messages += 2
            heapq.heappush(coming, (done + crossing_s, next(numbers), home, since, home))
            continue
        came_by_nats = at > since
        done = home.does(at, half_s + (2 * message_s if came_by_nats else half_s))
        if came_by_nats:
            home.messages += 2
            done += crossing_s
        if since >= _WARM_S:
            turns.append((done - since) * 1000)
        ask(done, home)
    cuts = statistics.quantiles(turns, n=100)
    return Simulated(
        bots=bots,
        decisions_per_s=len(turns) / seconds / len(some),
        busy=statistics.mean(each.worked_s for each in some) / until,
        turn_ms=cuts[49],
        late_ms=cuts[98],
        messages_per_s=statistics.mean(each.messages for each in some) / until,
    )


class NeededMachines(msgspec.Struct, frozen=True, kw_only=True):
    """What so many bots need, of which a share plays.

    Attributes:
        by_cpu, by_files: how many gateways CPU time and open files ask for, a core each.
        memory_gib: of all gateways.
        nats_per_s, nats_cores: messages and cores of NATS if pairs are drawn freely; 0 if bots meet
            on one gateway only.
    """

    bots: int
    playing: float
    decisions_per_s: float
    by_cpu: int
    by_files: int
    memory_gib: float
    nats_per_s: float
    nats_cores: float

    @property
    def gateways(self) -> int:
        return max(self.by_cpu, self.by_files)


def needed(bots: int, playing: float, costs: Costs, load: Load) -> NeededMachines:
    """Add up what is needed; a gateway's core is used up to six tenths."""
    turn_s = (2 * load.link_ms + load.think_ms) / 1000
    decisions = bots * playing / _SEATS / turn_s
    by_files = ceil(bots / _FILES)
    used = decisions * costs.decision_us / 1e6 + bots * costs.idle_us_per_s / 1e6
    by_cpu = ceil(used / _FULL)
    messages = 0.0
    if max(by_cpu, by_files) > 1:  # messages cost CPU time as well, and so gateways
        crosses = (1 - 1 / by_cpu) * (_SEATS - 1) / _SEATS
        messages = 2 * decisions * crosses
        by_cpu = ceil((used + messages * 2 * costs.message_us / 1e6) / _FULL)
    return NeededMachines(
        bots=bots,
        playing=playing,
        decisions_per_s=decisions,
        by_cpu=by_cpu,
        by_files=by_files,
        memory_gib=bots * (costs.idle_kib + playing / _SEATS * costs.match_kib) / _GIB,
        nats_per_s=messages,
        nats_cores=messages * costs.server_us / 1e6,
    )


def _simulation_lines(costs: Costs, load: Load) -> Iterator[str]:
    yield "bots on a gateway, all playing | decisions/s | core | turn ms | 99 % | messages/s"
    for gateways in (1, 10, 1000):
        yield f"of {gateways:,} gateways:"
        for bots in _SIZES:
            each = simulate(bots, gateways, costs, load)
            yield (
                f"  {each.bots:,} | {each.decisions_per_s:,.0f} | {each.busy:.0%} | "
                f"{each.turn_ms:.2f} | {each.late_ms:.1f} | {each.messages_per_s:,.0f}"
            )


def _scale_lines(costs: Costs, load: Load) -> Iterator[str]:
    yield "bots | playing | decisions/s | gateways by CPU, by files | GiB | NATS messages/s, cores"
    for bots in (10_000, 100_000, 1_000_000):
        for playing in (1.0, 0.05):
            each = needed(bots, playing, costs, load)
            yield (
                f"  {bots:,} | {playing:.0%} | {each.decisions_per_s:,.0f} | "
                f"{each.by_cpu:,}, {each.by_files:,} | {each.memory_gib:.2f} | "
                f"{each.nats_per_s:,.0f}, {each.nats_cores:.1f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--link-ms", type=float, default=Load().link_ms)
    parser.add_argument("--think-ms", type=float, default=Load().think_ms)
    asked = parser.parse_args()
    load = Load(link_ms=asked.link_ms, think_ms=asked.think_ms)
    costs = Costs()
    print(costs)
    for line in (*_simulation_lines(costs, load), *_scale_lines(costs, load)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
