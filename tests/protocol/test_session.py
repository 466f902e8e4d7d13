"""Who may say what when, at both ends of the wire."""

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ace_king_queen import Open
from protocol.errors import OutOfTurn
from protocol.messages import (
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    Ending,
    Goodbye,
    Hello,
    Limits,
    Match,
    Over,
    Past,
    Ready,
    Refused,
    Termination,
    Welcome,
)
from protocol.session import (
    SEAT_TABLE,
    SESSION_TABLE,
    SeatStanding,
    SeatState,
    Session,
    State,
    ask_id,
)

HELLO = Hello(1, "nash", ("ace_king_queen",))
WELCOME = Welcome(1, "nash", "secret", Limits())
GOODBYE = Goodbye()
REFUSED = Refused("name", "taken")

SENT = {
    State.NEW: "before hello",
    State.GREETED: "(before welcome|twice: it is said once per connection)",
    State.OPEN: "(after welcome|twice: it is said once per connection)",
    State.LEAVING: "after goodbye",
    State.CLOSED: "after hello was refused",
}
STANDS = {
    SeatState.FREE: "there is no such match here",
    SeatState.INVITED: "ready has not been said for it",
    SeatState.ASKED: "its question has not been answered",
    SeatState.OVER: "it is over",
}
"""What is said of a message that there is no entry for; a seat that is seated has one for all."""


def invite(match: str = "m") -> Match:
    return Match(match, "ace_king_queen", 0, ("a", "b"), {}, Limits(), "hash")


def ready(match: str = "m") -> Ready:
    return Ready(match, "nonce")


def ask(number: int = 1, match: str = "m") -> Ask:
    return Ask(match, ask_id(match, number), Open(number, "A"), (), 0, 0)


def answer(number: int = 1, match: str = "m") -> Answer:
    return Answer(match, ask_id(match, number), "bet")


def past(number: int = 1, match: str = "m") -> Past:
    return Past(match, ask_id(match, number), Open(number, "A"), (), "bet")


def refuse(number: int = 1, match: str = "m") -> Refused:
    """In practice, an answer that was not legal."""
    return Refused("illegal", "no", match, ask_id(match, number), ["bet", "check"])


def over(match: str = "m") -> Over:
    return Over(match, (), (0, 0), Termination(Ending.COMPLETED), None)


def session(*messages: BotMessage | ArenaMessage) -> Session:
    """A session in which these have been said."""
    result = Session()
    for message in messages:
        result.note(message)
    return result


OPENED = (HELLO, WELCOME)
SEATED = (*OPENED, invite(), ready())
ASKED = (*SEATED, ask())
ANSWERED = (*ASKED, answer())
ENDED = (*ASKED, over())

MESSAGES: tuple[BotMessage | ArenaMessage, ...] = (
    HELLO,
    WELCOME,
    REFUSED,
    GOODBYE,
    invite(),
    ready(),
    ask(),
    answer(),
    past(),
    over(),
)


# ---- The table


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("state", State)
def test_only_what_the_table_has_may_be_said(
    state: State, message: BotMessage | ArenaMessage
) -> None:
    end = (
        session(*ASKED) if isinstance(message, Answer | Ask | Past) else session(*OPENED, invite())
    )
    end.state = state

    if (state, type(message)) in SESSION_TABLE:
        end.note(message)

        assert end.state is SESSION_TABLE[state, type(message)]
    else:
        name = type(message).__name__.lower()
        with pytest.raises(OutOfTurn, match=f"^{name} may not be sent {SENT[state]}$"):
            end.note(message)


@pytest.mark.parametrize("kind", [Match, Ready, Ask, Answer, Past, Refused, Over])
@pytest.mark.parametrize("before", SeatState)
def test_only_what_the_table_has_may_be_said_of_a_seat(before: SeatState, kind: type[Any]) -> None:
    ways: dict[SeatState, tuple[BotMessage | ArenaMessage, ...]] = {
        SeatState.FREE: OPENED,
        SeatState.INVITED: (*OPENED, invite()),
        SeatState.SEATED: ANSWERED,
        SeatState.ASKED: ASKED,
        SeatState.OVER: ENDED,
    }
    end = session(*ways[before])
    message: BotMessage | ArenaMessage = next(
        message for message in (refuse(), *MESSAGES) if type(message) is kind
    )

    assert end.seat("m") is before
    if (before, kind) in SEAT_TABLE:
        end.note(message)

        assert end.seat("m") is SEAT_TABLE[before, kind]
    else:
        stood = copy.deepcopy(vars(end))
        name = kind.__name__.lower()
        why = f"^{name} may not be sent for match 'm': {STANDS[before]}$"
        with pytest.raises(OutOfTurn, match=why):
            end.note(message)
        assert vars(end) == stood


# ---- Conversations

SEATED_ = "hello welcome match ready"
CONVERSATIONS = {
    "a match from hello to goodbye": f"{SEATED_} ask:1 answer:1 ask:2 answer:2 over goodbye",
    "J10 who finishes plays on": f"{SEATED_} ask:1 finish finish- answer:1 ask:2 =asked goodbye",
    "J10 and may leave now": f"{SEATED_} ask:1 finish goodbye",
    "J10 it finishes no more after a loss": f"{SEATED_} ask:1 finish lost hello welcome finish",
    "seats do not mind each other": f"{SEATED_} ask:1 match/n =asked answer/n:1! =asked",
    "an answer counts once": f"{SEATED_} ask:1 answer:1 answer:1-",
    "an answer to an earlier question": f"{SEATED_} ask:1 answer:1 ask:2 answer:1- =asked",
    "an answer before any question": f"{SEATED_} answer:1!",
    "what crosses an over": f"{SEATED_} ask:1 over ready- answer:1- over- =over",
    "after a loss hello comes first": f"{SEATED_} ask:1 lost answer:1!",
    "seats stand as they stood": f"{SEATED_} ask:1 lost hello welcome match ask:1 =asked answer:1",
    "an invitation that came again": f"{SEATED_} ask:1 match ready- =asked",
    "the past, invited": "hello welcome match past:1 past:2 past:1 =invited",
    "the past, seated": f"{SEATED_} past:1 past:2 past:1 =seated",
    "the past, asked": f"{SEATED_} ask:1 past:1 past:2 past:1 =asked answer:1",
    "the past, answered": f"{SEATED_} ask:1 answer:1 past:1 past:2 past:1 =seated answer:1-",
    "a program without its memory, at the arena": (
        f"{SEATED_} ask:1 answer:1 ask:2 lost hello welcome match ready- past:1 ask:2 answer:2"
    ),
    "a program without its memory": f"{SEATED_} past:1 ask:2 answer:2",
    "a refused answer leaves its question standing": (
        f"{SEATED_} ask:1 answer:1 refuse:1 =asked answer:1 =seated refuse:1 =asked answer:1 "
        "=seated ask:2 answer:1- answer:2"
    ),
    "what is refused without an ask": f"{SEATED_} ask:1 refused =asked refused/m =asked refused/x =asked",
}
"""All that is said counts, but for `-`, and `!` is out of turn; `=` is how the seat in `m` stands."""


SAID: dict[str, Callable[[str, int], Any]] = {
    "hello": lambda *_: HELLO,
    "welcome": lambda *_: WELCOME,
    "goodbye": lambda *_: GOODBYE,
    "finish": lambda *_: Goodbye(finish=True),
    "refused": lambda name, _: Refused("malformed", "no", name or None),
    "match": lambda name, _: invite(name or "m"),
    "ready": lambda name, _: ready(name or "m"),
    "over": lambda name, _: over(name or "m"),
    "ask": lambda name, number: ask(number, name or "m"),
    "answer": lambda name, number: answer(number, name or "m"),
    "past": lambda name, number: past(number, name or "m"),
    "refuse": lambda name, number: refuse(number, name or "m"),
}


@pytest.mark.parametrize("words", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_J10_what_counts_in_a_conversation(words: str) -> None:
    end = Session()
    for word in words.split():
        if word[0] == "=":
            assert end.seat("m").name.lower() == word[1:]
        elif word == "lost":
            end.disconnected()
            assert not end.finishing
        else:
            [said] = re.findall(r"^(\w+)(?:/(\w))?(?::(\d))?([-!]?)$", word)
            kind, name, number, mark = said
            message, stood = SAID[kind](name, int(number or 1)), copy.deepcopy(vars(end))
            if mark == "!":
                with pytest.raises(OutOfTurn):
                    end.note(message)
            else:
                assert end.note(message) is (mark == ""), word
            assert kind != "finish" or end.finishing
            assert kind != "past" or vars(end) == stood


# ---- Answers


@pytest.mark.parametrize(
    "name",
    [
        "m:3",
        "m:0",
        "m:",
        "m",
        "m:-1",
        "m:1.5",
        "m:²",
        "m:٣",
        "M:1",
        "x:1",
        ":1",
        "",
        "m:1:1",
        "m: 1",
        "m:" + "9" * 5000,
    ],
)
def test_an_answer_to_what_was_never_asked_is_out_of_turn(name: str) -> None:
    end = session(*ANSWERED, ask(2))

    with pytest.raises(OutOfTurn, match=r"was never asked in match 'm'; the latest ask is 'm:2'$"):
        end.note(Answer("m", name, "bet"))


def test_an_ask_whose_name_is_no_number_can_be_answered_all_the_same() -> None:
    named = Ask("m", "m:" + "9" * 5000, Open(1, "A"), (), 0, 0)
    end = session(*SEATED, named)

    with pytest.raises(OutOfTurn):
        end.note(answer(1))
    assert end.note(Answer("m", named.ask, "bet"))


def test_more_seats_that_are_over_are_remembered_than_there_can_be_tables() -> None:
    end = session(*OPENED)
    for number in range(8193):
        end.note(invite(f"m{number}"))
        end.note(over(f"m{number}"))

    assert end.seat("m0") is SeatState.FREE
    assert end.seat("m1") is SeatState.OVER
    assert end.seat("m8192") is SeatState.OVER


# ---- A standing that is kept beside a seat


def test_a_standing_notes_asks_and_answers_for_its_session() -> None:
    end = session(*SEATED)
    standing = end.standing("m")

    assert standing.note_ask("m:1")
    assert end.seat("m") is SeatState.ASKED
    assert not standing.note_ask("m:2"), "before the answer"
    assert not standing.note_answer("m:2"), "to what was not asked"
    assert standing.note_answer("m:1")
    assert end.seat("m") is SeatState.SEATED
    assert not standing.note_answer("m:1"), "it counts once"
    assert end.note(answer()) is False


@pytest.mark.parametrize("before", SeatState)
def test_a_standing_allows_no_more_than_the_table(before: SeatState) -> None:
    may_be_asked = SeatStanding(before, "m:1").note_ask("m:2")
    may_answer = SeatStanding(before, "m:1").note_answer("m:1")

    assert not may_be_asked or SEAT_TABLE[before, Ask] is SeatState.ASKED
    assert not may_answer or SEAT_TABLE[before, Answer] is SeatState.SEATED


def test_a_standing_that_is_looked_at_before_the_invitation_is_free() -> None:
    end = session(*OPENED)

    assert end.standing("m").state is SeatState.FREE
    end.note(invite())
    assert end.standing("m").state is SeatState.INVITED


# ---- Any messages at all

NAMES = st.sampled_from(["m", "n", "m:1", ""])
ASKS = st.sampled_from(
    ["m:1", "m:2", "m:3", "n:1", "m:01", "m:", "m:x", "", "m:²", "m:" + "9" * 5000]
)
ANY_MESSAGE: st.SearchStrategy[BotMessage | ArenaMessage] = st.one_of(
    st.sampled_from([HELLO, WELCOME, WELCOME, GOODBYE, REFUSED]),
    st.builds(invite, NAMES),
    st.builds(ready, NAMES),
    st.builds(over, NAMES),
    st.builds(Answer, NAMES, ASKS, st.just("bet")),
    st.builds(lambda m, a: Past(m, a, Open(1, "A"), (), "bet"), NAMES, ASKS),
    st.builds(lambda m, a: Refused("illegal", "no", m, a, []), NAMES, ASKS),
    st.builds(lambda m, a: Ask(m, a, Open(1, "A"), (), 0, 0), NAMES, ASKS),
)


@given(
    st.sampled_from([(), OPENED, SEATED, ASKED, ENDED]),
    st.lists(st.one_of(st.none(), ANY_MESSAGE), max_size=30),
)
def test_any_messages_count_or_not_or_are_out_of_turn(
    before: tuple[BotMessage | ArenaMessage, ...], messages: list[BotMessage | ArenaMessage | None]
) -> None:
    end = session(*before)
    for message in messages:
        if message is None:
            end.disconnected()
            continue
        stood = copy.deepcopy(vars(end))
        try:
            counts = end.note(message)
        except OutOfTurn:
            assert vars(end) == stood, "a refused message changes nothing"
        else:
            assert type(counts) is bool


class RandomConversation:
    """An arena and a bot that say only what their tables allow, with messages crossing between
    them.

    Like the gateway and the client of ours, the arena repeats invitations and questions after a
    reconnect, and the bot accepts every invitation and repeats its answers.
    """

    def __init__(self) -> None:
        self.arena, self.bot = Session(), Session()
        self.to_bot: deque[ArenaMessage] = deque()
        self.to_arena: deque[BotMessage] = deque()
        self.seats: dict[str, int] = {}  # the number of the latest ask, by seat
        self.missed: list[Over] = []
        self.opened = 0
        self.connect()
        self.deliver_all()

    @property
    def is_connected(self) -> bool:
        return self.arena.state is State.OPEN

    def connect(self) -> None:
        self.say(HELLO)

    def say(self, message: BotMessage) -> None:
        self.bot.note(message)
        self.to_arena.append(message)

    def tell(self, message: ArenaMessage) -> None:
        self.arena.note(message)
        self.to_bot.append(message)

    def lose_connection(self) -> None:
        """Whatever is on the wire is lost."""
        self.arena.disconnected()
        self.bot.disconnected()
        self.to_bot.clear()
        self.to_arena.clear()
        self.connect()

    def arena_hears(self) -> None:
        if not self.to_arena:
            return
        message = self.to_arena.popleft()
        self.arena.note(message)
        if isinstance(message, Hello):
            self.tell(WELCOME)
            for late in self.missed:
                self.tell(late)
            self.missed = []
            for seat in self.seats:
                before = self.arena.seat(seat)
                self.tell(invite(seat))
                if before is SeatState.ASKED:
                    self.tell(ask(self.seats[seat], seat))

    def bot_hears(self) -> None:
        if not self.to_bot:
            return
        message = self.to_bot.popleft()
        counts = self.bot.note(message)
        if isinstance(message, Match) and counts:
            self.say(ready(message.match))
        elif isinstance(message, Ask) and counts:
            self.say(Answer(message.match, message.ask, "bet"))

    def deliver_all(self) -> None:
        while self.to_arena or self.to_bot:
            self.arena_hears()
            self.bot_hears()

    def open_match(self) -> None:
        if self.is_connected:
            self.opened += 1
            self.seats[f"m{self.opened}"] = 0
            self.tell(invite(f"m{self.opened}"))

    def ask_all(self) -> None:
        for seat in self.seats:
            if self.is_connected and self.arena.seat(seat) is SeatState.SEATED:
                self.seats[seat] += 1
                self.tell(ask(self.seats[seat], seat))

    def end_oldest(self) -> None:
        if self.seats:
            seat = next(iter(self.seats))
            del self.seats[seat]
            if self.is_connected:
                self.tell(over(seat))
            else:
                self.missed.append(over(seat))


@settings(max_examples=200)
@given(st.lists(st.sampled_from("abdoqel"), max_size=60))
def test_two_ends_that_keep_to_the_table_never_blame_each_other(moves: list[str]) -> None:
    wire = RandomConversation()
    for move in moves:
        match move:
            case "a":
                wire.arena_hears()
            case "b":
                wire.bot_hears()
            case "d":
                wire.deliver_all()
            case "o":
                wire.open_match()
            case "q":
                wire.ask_all()
            case "e":
                wire.end_oldest()
            case _:
                wire.lose_connection()
    wire.deliver_all()

    for seat in wire.seats:
        assert wire.arena.seat(seat) is wire.bot.seat(seat)


def test_ask_ids_count_within_their_seat() -> None:
    assert ask_id("x-1.0", 7) == "x-1.0:7"
