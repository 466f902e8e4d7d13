"""What would connected bots cost on several gateways? `python -m tests.tools.gateways` simulates it.

A gateway is a process that holds sockets and referees; NATS is between gateways. A match of two
bots is refereed by the gateway of one of them, so a decision of the other may cross: its question
goes by one message to the other gateway, its answer by one back. Gateways are queues with one
server each. A bot answers after its link and its thinking, and has one match after another.

The page `arena/hosts/many_machines.md` quotes what is printed. No part of CI.
"""

from __future__ import annotations

import heapq
import random
import statistics
from itertools import count
from math import ceil

__all__ = ["main", "needed", "simulate"]

# What things cost, as it was measured on two noisy cores in 2026. Of a gateway's CPU time:
DECISION_US = 65.0  # where each bot has one match: the groups `matches` and `tables` of the bench
IDLE_US_PER_S = 15.0  # of an idle bot, for its pings: `python -m tests.tools.bench idle`
MESSAGE_US = 9.0  # to send or receive one message by nats-py
# Of memory:
IDLE_KIB = 9.2  # an idle bot
MATCH_KIB = 6.0  # a match that is played
# Of NATS:
SERVER_US = 3.5  # CPU time of nats-server for a message
CROSSING_MS = 0.2  # between two gateways, one way

LINK_MS, THINK_MS = 20.0, 5.0  # of a bot, each way, and for an answer
_FULL = 0.6  # of a core; the queue grows fast beyond it, as the simulation shows
_FILES = 60_000  # of the 65,536 that `LimitNOFILE` of the manual allows
_SIMULATED_GATEWAYS = 4  # enough: all are alike
_SECONDS, _WARM_S = 6.0, 1.0
_SIZES = (200, 400, 600, 800, 1000, 1200)
_SEATS = 2
_GIB = 1 << 20  # in KiB


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


def simulate(bots: int, gateways: int) -> str:
    """Let so many bots on each of `gateways` play; a few of the gateways stand for all.

    The line has the decisions a second of a gateway, the share of its core that it used, the
    arena's part of a turn, from an answer's arrival to the next question, as the median and the
    99th percentile, and its messages a second to and from NATS.
    """
    draw = random.Random(0)
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
        way_s = 2 * LINK_MS + draw.expovariate(1 / THINK_MS)
        at += way_s / 1000
        heapq.heappush(coming, (at, next(numbers), near, at, home))

    for home in some:
        for _ in range(bots // _SEATS):
            ask(draw.random() * 2 * LINK_MS / 1000, home)
    until = _WARM_S + _SECONDS
    crossing_s, message_s = CROSSING_MS / 1000, MESSAGE_US / 1e6
    while coming[0][0] < until:
        at, _, here, since, home = heapq.heappop(coming)
        # Half of the work is that of the socket, half that of the referee.
        half_s = DECISION_US / 2 / 1e6 * draw.expovariate(1.0)
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
    busy = statistics.mean(each.worked_s for each in some) / until
    messages = statistics.mean(each.messages for each in some) / until
    return (
        f"  {bots:,} | {len(turns) / _SECONDS / len(some):,.0f} | {busy:.0%} | "
        f"{cuts[49]:.2f} | {cuts[98]:.1f} | {messages:,.0f}"
    )


def needed(bots: int, playing: float) -> str:
    """Add up what so many bots need, of which a share plays; a core is used up to six tenths.

    The line has the decisions a second, how many gateways CPU time and open files ask for, a core
    each, the memory of all, and NATS's messages a second and cores if pairs are drawn freely.
    """
    turn_s = (2 * LINK_MS + THINK_MS) / 1000
    decisions = bots * playing / _SEATS / turn_s
    by_files = ceil(bots / _FILES)
    used = decisions * DECISION_US / 1e6 + bots * IDLE_US_PER_S / 1e6
    by_cpu = ceil(used / _FULL)
    messages = 0.0
    if max(by_cpu, by_files) > 1:  # messages cost CPU time as well, and so gateways
        crosses = (1 - 1 / by_cpu) * (_SEATS - 1) / _SEATS
        messages = 2 * decisions * crosses
        by_cpu = ceil((used + messages * 2 * MESSAGE_US / 1e6) / _FULL)
    memory_gib = bots * (IDLE_KIB + playing / _SEATS * MATCH_KIB) / _GIB
    return (
        f"  {bots:,} | {playing:.0%} | {decisions:,.0f} | {by_cpu:,}, {by_files:,} | "
        f"{memory_gib:.2f} | {messages:,.0f}, {messages * SERVER_US / 1e6:.1f}"
    )


def main() -> None:
    print("bots on a gateway, all playing | decisions/s | core | turn ms | 99 % | messages/s")
    for gateways in (1, 10, 1000):
        print(f"of {gateways:,} gateways:")
        for bots in _SIZES:
            print(simulate(bots, gateways), flush=True)
    print("bots | playing | decisions/s | gateways by CPU, by files | GiB | NATS messages/s, cores")
    for bots in (10_000, 100_000, 1_000_000):
        for playing in (1.0, 0.05):
            print(needed(bots, playing))


if __name__ == "__main__":
    main()
