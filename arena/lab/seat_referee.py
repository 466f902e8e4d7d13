"""Asks a bot the questions of one seat, in one match after another, like the arena's referee.

The bot is a process as in a competition and speaks the real protocol, over a WebSocket or pipes. A
`SeatReferee` replaces the referee of a private arena. What the seat is asked and told next comes
from a `Script`, which answers for the other seats: from a record, or by strategies. CPU time is not
charged here and `bank_ms` is always full, but the wall-time limits apply as in a match: `wall_ms`,
`wall_bank_ms`, and `start_ms` for the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

import msgspec

from arena.competitions.live_arena import LiveArena
from arena.games.match import MatchState
from arena.games.verdict import Finding
from arena.referee.bot_session import BotSession, LiveMatch, MatchSeat
from arena.referee.clock import Lag
from arena.referee.decision_time import TimeCharge
from protocol import messages
from protocol.errors import IllegalAnswer
from protocol.messages import Answer, Limits, Over, Ready, Verdict
from protocol.vocabulary import News, Question

__all__ = ["BotFailed", "Script", "SeatReferee", "arrived", "referee_of"]

_LOOK_S = 0.1  # between two checks of how long a bot has taken

Script: TypeAlias = Generator[tuple[Question[Any], tuple[News, ...]], Any, Over]
"""Yields each question of a seat with the news before it, receives the legal answer, and returns
the final `over` message without the match's id."""


class BotFailed(msgspec.Struct, frozen=True):
    """The bot could not go on.

    Attributes:
        text: the reason, in a line.
        number: the number of the seat's open question, from 1; 0 if none was open.
        stderr: the end of the bot's standard error.
    """

    text: str
    number: int = 0
    question: Question[Any] | None = None
    stderr: str = ""


def referee_of(arena: LiveArena) -> SeatReferee:
    """Replace an arena's referee by a new `SeatReferee`, and return it."""
    referee = SeatReferee(arena.limits, asyncio.get_running_loop().time)
    gateway: Any = arena.gateway
    gateway.referee = referee
    return referee


async def arrived(arena: LiveArena, name: str, limits: Limits) -> BotSession | BotFailed:
    """Wait for the `hello` of a launched bot."""
    within_s = (limits.start_ms + limits.hello_ms) / 1000
    await arena.wait_for_bots([name], within_s)
    player: BotSession | None = arena.gateway.players.get(name)
    if player is None:
        late = arena.supervisor.no_hello(name, f"within {within_s:,.0f} s")
        return BotFailed(arena.supervisor.ended.get(name, late))
    return player


class SeatReferee:
    """Replaces `Referee` for a gateway, and plays one seat of one match at a time.

    Attributes:
        decisions: the number of answers taken.
    """

    practice = False

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.lag = Lag(clock())
        self.on_verdict: Callable[[Verdict], None] = lambda verdict: None
        self.decisions = 0
        self._limits, self._clock = limits, clock
        self._gone: dict[str, BotFailed] = {}  # bots that failed between questions
        self._chair: MatchSeat | None = None  # the seat in the latest match
        self._script: Script | None = None
        self._looked_at = 0.0
        self._outcome: asyncio.Future[BotFailed | None] = asyncio.Future()

    @property
    def tables(self) -> tuple[LiveMatch, ...]:
        return () if self._chair is None or self._outcome.done() else (self._chair.table,)

    def put(
        self,
        player: BotSession,
        match: str,
        state: MatchState,
        seat: int,
        players: Sequence[str],
        script: Script,
        commitment: str = "",
    ) -> asyncio.Future[BotFailed | None]:
        """Begin to ask a bot a seat's questions; the future is done when the match is over.

        One match must be over before the next begins. The bot is told `match` (the id), `players`
        (the names by seat) and `commitment` (to the seed of the cards; may be empty).

        Args:
            script: goes through the match once; the future raises what it raises.
        """
        self._script = script
        outcome: asyncio.Future[BotFailed | None] = asyncio.Future()
        self._outcome = outcome
        game = state.game
        if game.name not in player.games:
            plays = ", ".join(sorted(player.games))
            self._end(BotFailed(f"said hello for {plays}, expected {game.name}"))
        elif player.leaving:
            self._end(self._gone.get(player.name, BotFailed("left before the match")))
        else:
            seats, now = [player] * game.seats, self._clock()
            table = LiveMatch(
                match, game, state.settings, seats, self._limits, lambda *_: None, now
            )
            table.match = state
            self._chair = chair = table.chairs[seat]
            chair.invite(
                messages.Match(
                    match=chair.id,
                    game=game.name,
                    seat=seat,
                    seats=tuple(players),
                    settings=msgspec.to_builtins(state.settings),
                    limits=self._limits,
                    commitment=commitment,
                )
            )
            chair.asked_at = now
        return outcome

    # ---- Called by the gateway

    def ready(self, player: BotSession, message: Ready) -> None:
        chair = player.chairs.get(message.match)
        if chair is not None and chair.nonce is None:
            chair.nonce = message.nonce
            self._play_on(chair, None)

    def answer(self, chair: MatchSeat, message: Answer, arrived: float) -> None:
        """Take an answer, and go on with the match."""
        question = chair.question
        if question is None or self._outcome.done():
            return
        if chair.player.is_metered and (wall := self._measure(chair, arrived)) is not None:
            chair.pay_wall(wall)
            if self._outcome.done():
                return
        try:
            given = question.check(message.value)
        except IllegalAnswer as error:
            self._fail(chair, f"{error}; {question.advice(message.value)}")
            return
        chair.question = None
        chair.player.pending -= 1
        chair.player.last_answer = arrived
        self.decisions += 1
        self._play_on(chair, given)

    def offence(self, player: BotSession, finding: Finding) -> None:
        said = finding.stderr or _tail(player)
        self._gone[player.name] = BotFailed(finding.text, stderr=said)
        for chair in player.chairs.values():
            question = chair.question
            waited = 0 if question is None else chair.asked
            self._end(BotFailed(finding.text, waited, question, said))

    def void(self, table: LiveMatch, text: str) -> None:
        """End the match because the arena itself has failed."""
        self._end(BotFailed(text))

    def tick(self) -> None:
        now = self._clock()
        self.lag.tick(now)
        if self.tables and self._chair is not None and now - self._looked_at >= _LOOK_S:
            self._looked_at = now
            self._measure(self._chair, now)

    # ---- Internal

    def _measure(self, chair: MatchSeat, now: float) -> TimeCharge | None:
        """Measure the wall time of an open question or start; the bot fails if it is too long."""
        wall = chair.measure_wall(now, None)
        if wall is None:
            return None
        if chair.nonce is None:
            limit_ms = self._limits.start_ms + wall.waited_ms
            if wall.taken_ms > limit_ms:
                self._fail(chair, f"not ready within {limit_ms:,.0f} ms after match")
        elif chair.question is not None and wall.left_ms < 0:
            chair.time_charge, text = wall, f"did not answer within {wall.limit_ms:,.0f} ms"
            self._fail(chair, text if wall.wall_bank_ms is None else chair.too_late().text)
        return wall

    def _play_on(self, chair: MatchSeat, given: Any) -> None:
        """Go on to the seat's next question."""
        assert self._script is not None, "it was begun with it"
        try:
            question, news = self._script.send(given)
        except StopIteration as ended:
            del chair.player.chairs[chair.id]
            over: Over = ended.value
            chair.player.send(msgspec.structs.replace(over, match=chair.id))
            self._end(None)
        except Exception as error:
            if not self._outcome.done():
                self._outcome.set_exception(error)
        else:
            chair.news += news
            chair.put(question, self._clock())
            chair.player.ask(chair)

    def _fail(self, chair: MatchSeat, text: str) -> None:
        question = chair.question
        number = 0 if question is None else chair.asked
        self._end(BotFailed(text, number, question, _tail(chair.player)))

    def _end(self, failed: BotFailed | None) -> None:
        if self._outcome.done():
            return
        self._outcome.set_result(failed)
        if self._chair is not None:
            self._chair.table.let_go()


def _tail(player: BotSession) -> str:
    return "" if player.process is None else player.process.tail()
