"""The stories in the `.cases` of this folder: bots without sockets, and a clock that steps set."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, Record
from arena.games.replay import replay
from arena.games.verdict import Finding
from arena.referee.bot_session import BotSession, LiveMatch, MatchSeat
from arena.referee.clock import TICK_S
from arena.referee.compute_gate import ComputeGate
from arena.referee.losses import Losses
from arena.referee.sessions import Pings
from arena.referee.timers import Timers
from protocol.codec import Encoding, decode_from_arena, encode
from protocol.messages import (
    ArenaMessage,
    Ask,
    Ending,
    Limits,
    Match,
    Mechanism,
    Over,
    Past,
    Ready,
    Verdict,
)
from protocol.session import Session
from tests.support.cases import step_cases
from tests.support.fake_bots import FakeArena, FakeBot, FakeBotProcess
from tests.support.scripted_connection import competition_over

LIMITS = Limits(decision_ms=1000, bank_ms=3000, hard_ms=5000, start_ms=2000, grace_ms=1000)
FULL_MS = LIMITS.bank_ms
TEXTS = ("advises", "voided")
"""Steps that are followed by a text."""

FILES = [Path(__file__).with_name(f"{name}.cases") for name in ("time", "matches", "sessions")]


@pytest.mark.parametrize("steps", [case for file in FILES for case in step_cases(file)])
def test_J7_a_timeline(house: FakeArena, steps: list[str]) -> None:
    timeline = Timeline(house)
    for step in steps:
        timeline.does(step)
    assert timeline.gone == []
    ruled = [(verdict, *result.others) for result, verdict in timeline.over.values() if verdict]
    assert timeline.verdicts == [verdict for verdicts in ruled for verdict in verdicts]


@pytest.mark.parametrize(
    "kind", [kind for kind in Ending if kind not in (Ending.COMPLETED, Ending.VOID)]
)
def test_J4_the_offender_is_told_all_and_the_others_one_word(
    house: FakeArena, kind: Ending
) -> None:
    timeline = Timeline(house)
    offence = ("table a b c d game=high_low", f"c offends {kind}", f"ends {kind} c", "by wire")
    for step in (*offence, *(f"{name} hears over" for name in "abcd")):
        timeline.does(step)
    assert timeline.ended[1].advice


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("game", GAMES)
def test_who_has_forgotten_all_is_told_all_of_its_match(
    house: FakeArena, game: str, encoding: Encoding
) -> None:
    names = [f"bot{seat}" for seat in range(GAMES[game].seats)]
    timeline = Timeline(house, encoding)
    timeline.does(f"table {' '.join(names)} game={game}")
    for _ in range(10):
        timeline.all_answer()
    for name in names:
        timeline.does(f"{name} goes")
        timeline.does(f"{name} comes back 0")
        timeline.does(f"{name} hears welcome match past* match{timeline.pending(name)}")


class Timeline:
    """A house whose bots are made when they are first named.

    Whatever they read is checked: what comes again is the same, the past is what was answered, a
    program that starts again can follow it, and of an offence only the offender is told more than
    one word.
    """

    def __init__(self, house: FakeArena, encoding: Encoding = Encoding.JSON) -> None:
        self.house = house
        self._encoding = encoding
        self._bots: dict[str, FakeBot] = {}
        self._tables: list[LiveMatch] = []
        self._asks: dict[str, dict[str, Ask]] = {}  # by bot and match, the latest at the end
        self._invitations: list[tuple[FakeBot, Match]] = []
        self._next_probes: dict[str, float | None] = {}
        self._first_heard: dict[tuple[type, str], ArenaMessage] = {}
        self._answered: dict[str, dict[str, Past]] = defaultdict(dict)  # by match and question
        self._told: dict[str, int] = {}  # by match, the number of its next question
        self._forgotten: dict[str, int] = {}  # by match, how many there are to tell
        self._programs: dict[str, Session] = {}  # those that have started again
        self.over: dict[str, tuple[MatchResult, Verdict | None]] = {}
        self.gate = ComputeGate(1)
        self._pings = Pings(house.referee.lag.total_s)
        self._timers: list[tuple[float, Callable[[], None]]] = []
        self.back: list[str] = []
        self.news: dict[str, list[str]] = {}
        self.verdicts: list[Verdict] = []
        self.gone: list[tuple[str, str]] = []
        self._losses = Losses(
            house.referee,
            LIMITS,
            lambda: house.now,
            cast(Timers, self),
            self._is_gone,
            self._is_back,
        )
        house.referee.on_verdict = self.verdicts.append

    def after(self, delay_s: float, call: Callable[[], None]) -> None:
        """A timer of a loss, which rings when a step has it ring."""
        self._timers.append((delay_s, call))

    def _is_gone(self, player: BotSession, finding: Finding) -> None:
        self.gone.append((player.name, finding.text))

    def _is_back(self, player: BotSession) -> None:
        self.back.append(player.name)

    def does(self, step: str) -> None:
        first, _, rest = step.partition(" ")
        if first in FACTS:
            assert str(FACTS[first](self)) == rest
        elif first in FACTS_OF_BOTS:
            name, _, rest = rest.partition(" ")
            assert str(FACTS_OF_BOTS[first](self, self._bot(name))) == rest
        elif do := getattr(self, f"do_{first}", None):
            do(*([rest] if first in TEXTS else rest.split()))
        else:
            verb, _, rest = rest.partition(" ")
            getattr(self, f"bot_{verb}")(self._bot(first), rest)
        self._note_results()

    def _note_results(self) -> None:
        self.over |= {table.id: (result, why) for table, result, why in self.house.results}

    def _bot(self, name: str) -> FakeBot:
        if name not in self._bots:
            self.do_bot(name)
        return self._bots[name]

    def _process(self, bot: FakeBot) -> FakeBotProcess:
        assert bot.process is not None, "only launched bots have processes"
        return bot.process

    @property
    def ended(self) -> tuple[MatchResult, Verdict]:
        [(_, result, verdict)] = self.house.results
        assert verdict is not None
        return result, verdict

    @property
    def record(self) -> Record:
        """Of the one match that is over."""
        [(_, result, _)] = self.house.results
        return result.record

    def newest(self, bot: FakeBot) -> Ask:
        """The question that it has read last."""
        return [*self._asks[bot.player.name].values()][-1]

    # --- what happens ---

    def do_bot(self, name: str, tables: str = "1") -> None:
        options: dict[str, Any] = {"tables": int(tables), "encoding": self._encoding}
        self._bots[name] = self.house.bot(name, **options)

    def do_launched(self, name: str, tables: str = "1") -> None:
        self._bots[name] = self.house.launched(name, tables=int(tables))

    def do_practice(self) -> None:
        self.house.referee.practice = True

    def do_unmetered(self, name: str) -> None:
        self._bot(name).player.is_metered = False

    def do_unknown(self, name: str) -> None:
        """The system does not say for how long it had no core."""
        process = self._process(self._bot(name))
        process.waited_ms = lambda: None  # type: ignore[method-assign]

    def do_pipes(self, name: str) -> None:
        """It has no link that could be measured."""
        self._bot(name).wire.is_linked = False

    def do_link(self, name: str, round_trip_ms: str) -> None:
        for _ in range(3):
            self._bot(name).player.link.measured(float(round_trip_ms))

    def do_invite(self, *words: str) -> None:
        fields = dict(word.split("=") for word in words if "=" in word)
        bots = [self._bot(word) for word in words if "=" not in word]
        game = "ace_king_queen" if len(bots) == 2 else "three_card_poker"
        game = fields.pop("game", game)
        numbers: dict[str, Any] = {name: int(number) for name, number in fields.items()}
        changed = {name: numbers.pop(name) for name in fields if hasattr(LIMITS, name)}
        limits = msgspec.structs.replace(LIMITS, **changed)
        self._tables.append(self.house.open(*bots, game=game, limits=limits, **numbers))

    def do_read(self, *names: str) -> None:
        for name in names:
            self._read(self._bot(name), self._bot(name).reads())

    def _read(self, bot: FakeBot, messages: list[ArenaMessage]) -> None:
        self._note_results()
        name = bot.player.name
        asks = self._asks.setdefault(name, {})
        for message in messages:
            self.news[name] = [news.kind for news in getattr(message, "news", ())]
            if (program := self._programs.get(name)) is not None:
                self._follow(program, message)
            if isinstance(message, Match):
                self._invitations.append((bot, message))
                self._is_as_before(message, message.match)
            elif isinstance(message, Ask):
                asks.pop(message.match, None)
                asks[message.match] = message
                self._is_as_before(message, message.ask)
            elif isinstance(message, Over):
                if message.standing is msgspec.UNSET:
                    self._is_told(message)
                self._is_as_before(message, message.match)
            elif isinstance(message, Past):
                pasts = [*self._answered[message.match].values()]
                assert message == as_told(bot, pasts[self._told[message.match]])
                self._told[message.match] += 1

    def _is_as_before(self, message: ArenaMessage, key: str) -> None:
        assert message == self._first_heard.setdefault((type(message), key), message)

    def _follow(self, program: Session, message: ArenaMessage) -> None:
        """A program that has just started takes it, and answers its invitations."""
        program.note(message)
        if isinstance(message, Match) and message.match not in self._told:
            self._told[message.match] = 0
            program.note(Ready(message.match, "nonce"))

    def _is_told(self, over: Over) -> None:
        """Only the offender, at the seat of its offence, is told more than one word."""
        table, _, seat = over.match.rpartition(".")
        result, verdict = self.over[table]
        is_offender = verdict is not None and verdict.seat == int(seat)
        text = "" if verdict is not None and not is_offender else result.termination.text
        assert over.termination == msgspec.structs.replace(result.termination, text=text)
        assert over.verdict == (verdict if is_offender else None)
        assert over.scores == result.scores
        assert over.reveal is not None
        assert over.reveal.seed == result.record.seed

    def do_sit(self, *names: str) -> None:
        self.do_read(*names)
        waiting, self._invitations = self._invitations, []
        for bot, invitation in waiting:
            nonce = f"nonce of {bot.player.name}"
            self.house.say(bot, Ready(invitation.match, nonce))

    def do_table(self, *words: str) -> None:
        names = list(dict.fromkeys(word for word in words if "=" not in word))
        self.do_invite(*words)
        self.do_sit(*names)
        self.do_read(*names)

    def do_wait(self, seconds: str) -> None:
        self.house.now += float(seconds)

    def do_pass(self, seconds: str) -> None:
        self.house.passes(float(seconds))

    def do_until(self, _over: str, count: str) -> None:
        while len(self.house.results) < int(count):
            self.house.passes(0.1)

    def do_stall(self, seconds: str) -> None:
        self.house.held_up(float(seconds))

    def do_tick(self) -> None:
        self.house.referee.tick()

    def do_watch(self, *names: str, in_s: float = 0.0) -> None:
        """Its link is looked at from now on."""
        for name in names:
            self._pings.add(self._bot(name).player, self.house.now + in_s)

    def do_crowd(self, count: str, _in: str, seconds: str) -> None:
        self.do_watch(*(f"bot {number}" for number in range(int(count))), in_s=float(seconds))

    def do_idle(self, seconds: str, *answering: str) -> None:
        """Time passes in which links are looked at, and some bots answer pings."""
        until = self.house.now + float(seconds)
        ticks_once = self.house.now == until
        while self.house.now < until or ticks_once:
            ticks_once = False
            self.house.now = min(self.house.now + 0.05, until)
            silent = self._pings.tick(self.house.now)
            self.gone += [(player.name, "silent") for player, _ in silent]
            for name in answering:
                while self._bot(name).wire.pings:
                    self.do_replies(name)

    def do_unlooked(self) -> None:
        for bot in self._bots.values():
            bot.wire.looks = 0

    def do_looked(self, most: str) -> None:
        assert sum(bot.wire.looks for bot in self._bots.values()) <= int(most)

    def do_all(self, _pinged: str) -> None:
        assert all(bot.wire.pings for bot in self._bots.values())

    def do_forget(self) -> None:
        self.house.results.clear()

    def do_silent(self, name: str, since_s: str = "0") -> None:
        """Its machine acknowledges nothing."""
        self._bot(name).wire.silent = self.house.now - float(since_s)

    def do_heard(self, name: str) -> None:
        self._bot(name).wire.silent = None

    def do_lost(self, name: str) -> None:
        """Its connection is closed, and a timer waits for it to come back."""
        player = self._bot(name).player
        player.disconnected()
        self._losses.begin(player, self.house.now)

    def do_ring(self) -> None:
        _, call = self._timers.pop(0)
        call()

    def do_gate(self, cores: str) -> None:
        self.gate.cores = int(cores)

    def do_gated(self, *names: str) -> None:
        for name in names:
            self.do_launched(name)
            self._bots[name].player.gate = self.gate

    def do_hold(self) -> None:
        """Somebody else has a core."""
        self.gate.enter("another", lambda: None)

    def do_free(self) -> None:
        self.gate.leave("another")

    def do_standing(self, name: str) -> None:
        """A competition is over, and it is told how it stands."""
        self._bot(name).player.send(competition_over())

    def do_void(self, table: str = "0") -> None:
        """The last match that was opened, or another one."""
        self.house.referee.void(self._tables[int(table) - 1], "it was stopped")

    def do_play(self, _out: str) -> None:
        """Whoever is asked answers, until nobody is."""
        while self.all_answer():
            pass

    def all_answer(self) -> bool:
        """Whoever is asked answers; whether anybody was."""
        self.do_read(*self._bots)
        asked = [
            (self._bots[name], ask)
            for name, asks in self._asks.items()
            for ask in asks.values()
            if (chair := self._bots[name].player.chairs.get(ask.match)) and chair.ask == ask
        ]
        for bot, ask in asked:
            self._answer(bot, ask)
        return bool(asked)

    def pending(self, name: str) -> str:
        """The kinds of the questions that it has not answered."""
        return " ask" * self._bots[name].player.pending

    def do_past(self, name: str, tables: str = "1") -> None:
        """Some matches against the dealer whose past has more than one piece."""
        for _ in range(int(tables)):
            self.do_invite(name)
        self.do_sit(name)
        self.do_read(name)
        for _ in range(1200 // int(tables)):
            for ask in [*self._asks[name].values()]:
                self._answer(self._bot(name), ask)
            self._read(self._bot(name), self._bot(name).reads_on())

    def do_piece(self, name: str, least: str, below: str) -> None:
        """A frame of this many bytes is written to it."""
        bot = self._bot(name)
        bot.player.flush(self.house.now)
        [frame] = bot.wire.frames
        assert int(least) <= len(frame) < int(below)
        self._read(bot, bot.wire.read())

    def do_stuck(self, name: str, below: str) -> None:
        """It does not read: it is told so much, and then no more; nor is it tried in a loop."""
        bot = self._bot(name)
        tries: list[BotSession] = []
        bot.player.flush(self.house.now)
        written = [*bot.wire.frames]
        bot.player.mark_dirty = tries.append
        for _ in range(10):
            bot.player.flush(self.house.now)
        assert bot.wire.frames == written
        assert sum(map(len, written)) < int(below)
        assert tries == []

    def do_turns(self, name: str, least: str) -> None:
        """It hears its past in at least this number of turns of the loop, and asks for each."""
        bot, turns = self._bot(name), 0
        wanted: list[BotSession] = []
        bot.player.mark_dirty = wanted.append
        while not bot.player.is_caught_up:
            wanted.clear()
            self.do_read(name)
            turns += 1
            assert bot.player.is_caught_up or wanted
        assert turns >= int(least)

    def do_count(self, name: str) -> None:
        """How often its times are read from now on is looked at later."""
        process = self._process(self._bot(name))
        process.looks = process.overbooked_looks = 0

    def do_probe(self, name: str) -> None:
        """Its link is looked at, and it may be pinged."""
        now = self.house.now
        lag_s = self.house.referee.lag.total_s(now)
        self._next_probes[name] = self._bot(name).player.probe(now, lag_s)

    def do_replies(self, name: str) -> None:
        """It answers the last ping, and again, which means nothing."""
        bot = self._bot(name)
        ping, ponged = bot.wire.pings.pop(), bot.player.ponged
        self._losses.heard(bot.player, self.house.now)
        assert [ponged(ping, self.house.now) for _ in range(2)] == [True, False]

    def do_pong(self, name: str, round_trip_s: str) -> None:
        """It is pinged, and answers."""
        self.do_probe(name)
        self.do_here(name)
        self.do_wait(round_trip_s)
        self.do_replies(name)

    # --- what a bot does ---

    def bot_says(self, bot: FakeBot, text: str) -> None:
        """Answer, by default its newest question with the first legal answer."""
        value, _, table = f" {text}".partition(" at ")
        asks = self._asks[bot.player.name]
        if table:
            match = f"{self._tables[int(table) - 1].id}."
            [ask] = [ask for ask in asks.values() if ask.match.startswith(match)]
        else:
            ask = self.newest(bot)
        self._answer(bot, ask, value.strip().strip('"') or None)

    def _answer(self, bot: FakeBot, ask: Ask, value: str | None = None) -> None:
        self._programs.pop(bot.player.name, None)
        said = self.house.answer(bot, ask, value)
        past = Past(ask.match, ask.ask, ask.question, ask.news, said)
        self._answered[ask.match][ask.ask] = past

    def bot_answers(self, bot: FakeBot, text: str) -> None:
        """The same, and then all read what they are asked."""
        self.bot_says(bot, text)
        self.do_read(*self._bots)

    def bot_hears(self, bot: FakeBot, kinds: str) -> None:
        """All that there is to read, by kind; `past*5` comes so often, and `past*` ever so often."""
        messages = bot.reads_on()
        self._read(bot, messages)
        words = (kind.partition("*") for kind in kinds.replace("nothing", "").split())
        wanted = "".join(
            f"({kind} )" + ("+" if star and not times else f"{{{times or 1}}}")
            for kind, star, times in words
        )
        heard = "".join(f"{type(message).__name__.lower()} " for message in messages)
        assert re.fullmatch(wanted, heard), heard[-200:]
        for match in bot.player.chairs:
            assert self._told.get(match, 0) >= self._forgotten.get(match, 0), "it is told all of it"

    def bot_goes(self, bot: FakeBot, by_the_arena: str) -> None:
        if not by_the_arena:
            bot.goes()
            return
        bot.player.disconnected()
        bot.player.connection_lost(self.house.now, bot.lag_s(), by_arena=True)

    def bot_comes(self, bot: FakeBot, back: str) -> None:
        """It comes back, knowing this number of questions of each match, or all; it may read slowly."""
        _, *about = back.split()
        first = int(about[0]) if about else None
        bot.comes_back(first, 10_000.0 if "slowly" in about else math.inf)
        for match in bot.player.chairs:
            self._told.pop(match, None)
            self._forgotten[match] = 0 if first is None else len(self._answered[match])
            if first:
                self._told[match] = first
        if first == 0:
            self._programs[bot.player.name] = program = Session()
            program.note(bot.hello)

    def bot_leaves(self, bot: FakeBot, _: str) -> None:
        bot.player.leaving = True  # the gateway does

    def bot_offends(self, bot: FakeBot, kind: str) -> None:
        finding = Finding(kind=Ending(kind), text="told so", mechanism=Mechanism.WIRE)
        self.house.referee.offence(bot.player, finding)

    def bot_computes(self, bot: FakeBot, seconds: str) -> None:
        self.house.computes(bot, float(seconds))

    def bot_burns(self, bot: FakeBot, seconds: str) -> None:
        """Many cores have been at work for it, in no time."""
        self._process(bot).used_ms += float(seconds) * 1000

    def bot_lacks(self, bot: FakeBot, a_core: str) -> None:
        """Time passes in which it is ready to run, and others have the cores."""
        end = self.house.now + float(a_core.split()[-1])
        while self.house.now < end:
            step = min(TICK_S, end - self.house.now)
            self.house.passes(step)
            self._process(bot).overbooked_ms += step * 1000

    def bot_has(self, bot: FakeBot, waited: str) -> None:
        self._process(bot).overbooked_ms += float(waited.split()[-1]) * 1000

    # --- what is so ---

    def do_goes(self, _: str) -> None:
        assert self.house.results == []

    def do_due(self, _in: str, seconds: str) -> None:
        """When the only timer rings."""
        [(delay_s, _)] = self._timers
        assert delay_s == pytest.approx(float(seconds))

    def do_gone(self, name: str, *text: str) -> None:
        """Its connection is given up: it did not come back, or it has answered no ping."""
        if text:
            assert self.gone.pop() == (name, " ".join(text))
        else:
            assert self._next_probes[name] is None

    def do_completed(self) -> None:
        [(table, result, verdict)] = self.house.results
        assert (result.termination.kind, verdict) == (Ending.COMPLETED, None)
        assert self.house.referee.tables == ()
        assert not any(bot.player.chairs for bot in self._bots.values())
        assert result.record.seed == table.seed.hex()
        assert replay(result.record) == result

    def do_voided(self, text: str) -> None:
        [(_, result, verdict)] = self.house.results
        assert (result.termination.kind, result.termination.text) == (Ending.VOID, text)
        assert verdict is None

    def do_events(self, *numbers: str) -> None:
        """The first match that was opened was lost by the event of which match, and so on."""
        lost = {table.id: (result, verdict) for table, result, verdict in self.house.results}
        for table, number in zip(self._tables, numbers, strict=True):
            result, verdict = lost[table.id]
            assert verdict is not None
            assert verdict.event == f"{self._tables[int(number) - 1].id}.0"
            assert result.record.events == (verdict.event,)
            assert replay(result.record).record == result.record

    def do_blamed(self, name: str, *seats: str) -> None:
        """It was to blame, at which seat of the first match, and so on."""
        over = [(table, verdict) for table, _, verdict in self.house.results if verdict]
        found = {table.id: (verdict.bot, str(verdict.seat)) for table, verdict in over}
        expected = zip(self._tables, seats, strict=False)
        assert found == {table.id: (name, seat) for table, seat in expected}

    def bot_is(self, bot: FakeBot, state: str) -> None:
        """Whether it is `hung` by an event that goes on, and `unresponsive` in other matches."""
        *no, what = state.split()
        is_so = bot.player.is_unresponsive if what == "unresponsive" else bool(bot.player.event)
        assert is_so is not bool(no)

    def do_at(self, number: str) -> None:
        """Which match it was that has ended."""
        assert self.house.results[0][0] is self._tables[int(number) - 1]

    def do_undealt(self) -> None:
        assert self._tables[-1].match is None

    def do_ends(self, kind: str, name: str, *fields: str) -> None:
        result, verdict = self.ended
        assert (verdict.kind, verdict.bot) == (kind, name)
        assert verdict.text == result.termination.text
        for field, _, value in (field.partition("=") for field in fields):
            is_so = getattr(verdict, field)
            number, _, about = value.partition("~")
            if value in ("None", "some"):
                assert (is_so is None) is (value == "None"), field
            else:
                assert is_so == pytest.approx(float(number), abs=float(about or 0.01)), field

    def do_advises(self, text: str) -> None:
        assert text in self.ended[1].advice

    def _chair(self, name: str, *at: str) -> MatchSeat:
        """The only one that it has, or its chair at a table."""
        chairs = [*self._bot(name).player.chairs.values()]
        if at:
            chairs = [chair for chair in chairs if chair.table is self._tables[int(at[1]) - 1]]
        [chair] = chairs
        return chair

    def do_bank(self, name: str, bank_ms: str, *at: str) -> None:
        self._is_left(self._chair(name, *at).clock.bank_ms, bank_ms)

    def do_wall(self, name: str, bank_ms: str, *at: str) -> None:
        """What is left in its bank of clock time; ticks are 10 ms apart."""
        left_ms = self._chair(name, *at).clock.wall_bank_ms
        assert left_ms == pytest.approx(int(bank_ms), abs=0.01)

    def do_began(self, name: str, _now: str, *at: str) -> None:
        """The clock of its question began just now."""
        chair = self._chair(name, *at)
        assert chair.ask is not None
        assert chair.asked_at == self.house.now

    def do_grace(self, name: str, grace_s: str) -> None:
        assert self._chair(name).grace_s == pytest.approx(float(grace_s))

    def do_silence(self, name: str, silence_s: str) -> None:
        assert self._chair(name).silence_s == pytest.approx(float(silence_s))

    def do_left(self, name: str, grace_s: str) -> None:
        """So much of its grace is left to a bot that is away."""
        bot = self._bot(name)
        assert bot.player.loss is not None
        left_s = self._chair(name).away_left_s(bot.player.loss, self.house.now, bot.lag_s())
        assert left_s == pytest.approx(float(grace_s), abs=0.02)

    def do_looks(self, name: str, least: str, most: str) -> None:
        """So often its CPU time was read."""
        assert int(least) <= self._process(self._bot(name)).looks <= int(most)

    def do_waits(self, name: str, most: str) -> None:
        """So often it was read how long it has waited for a core."""
        assert self._process(self._bot(name)).overbooked_looks <= int(most)

    def do_banks(self, *banks_ms: str) -> None:
        for chair, bank_ms in zip(self._tables[0].chairs, banks_ms, strict=True):
            self._is_left(chair.clock.bank_ms, bank_ms)

    def _is_left(self, left_ms: int, bank_ms: str) -> None:
        """A bank counts whole milliseconds, and the seconds of these timelines are not exact."""
        assert left_ms == pytest.approx(int(bank_ms), abs=int(int(bank_ms) != FULL_MS))

    def do_shows(self, name: str, bank_ms: str) -> None:
        ask = self.newest(self._bot(name))
        assert ask.decision_ms == self._bot(name).player.chairs[ask.match].table.limits.decision_ms
        self._is_left(ask.bank_ms, bank_ms)

    def do_there(self, name: str) -> None:
        assert self._bot(name).player.loss is None

    def do_floor(self, name: str, floor_ms: str) -> None:
        assert self._bot(name).player.link.floor_ms == pytest.approx(float(floor_ms))

    def do_next(self, name: str, in_s: str) -> None:
        assert self._next_probes[name] == pytest.approx(self.house.now + float(in_s))

    def do_here(self, name: str) -> None:
        assert self._next_probes[name] is not None


FACTS: dict[str, Callable[[Timeline], object]] = {
    "winner": lambda played: played.ended[0].winner,
    "scores": lambda played: " ".join(map(str, played.ended[0].scores)),
    "nonces": lambda played: " and ".join(nonce or "none" for nonce in played.record.nonces),
    "first": lambda played: played.record.answers[0],
    "says": lambda played: played.ended[1].text,
    "by": lambda played: played.ended[1].mechanism,
    "stderr": lambda played: played.ended[1].stderr,
    "over": lambda played: len(played.house.results),
    "waiting": lambda played: played.gate.waiting,
    "away": lambda played: " ".join(map(str, played.record.away or ())),
    "out": lambda played: " ".join(map(str, played.ended[0].out)),
    "back": lambda played: " ".join(played.back),
}
"""Steps that are followed by what is so."""

FACTS_OF_BOTS: dict[str, Callable[[Timeline, FakeBot], object]] = {
    "pending": lambda played, bot: bot.player.pending,
    "pings": lambda played, bot: len(bot.wire.pings),
    "news": lambda played, bot: " ".join(played.news[bot.player.name]),
    "asked": lambda played, bot: played.newest(bot).question.kind,
}
"""The same, after the name of a bot."""


def as_told(bot: FakeBot, past: Past) -> ArenaMessage:
    """How it arrives on the other side of the wire."""
    encoding = bot.wire.encoding
    frame = encode(past, encoding)
    [told] = decode_from_arena(frame, encoding, bot.wire.games.__getitem__)
    return told
