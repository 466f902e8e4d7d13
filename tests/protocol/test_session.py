"""Who may say what when, at both ends of the wire."""

from __future__ import annotations

import copy
from collections import deque
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


def test_a_match_from_hello_to_goodbye() -> None:
    end = session()
    said: list[BotMessage | ArenaMessage] = [*ANSWERED, ask(2), answer(2), over()]
    said.append(GOODBYE)

    assert [end.note(message) for message in said] == [True] * len(said)
    assert end.state is State.LEAVING


def test_J10_a_bot_that_finishes_plays_on_until_it_leaves_or_comes_back() -> None:
    end = session(*ASKED)
    finish = Goodbye(finish=True)

    assert [end.note(finish), end.note(finish)] == [True, False]
    assert end.note(answer())
    assert end.finishing
    end.disconnected()
    assert not end.finishing
    again = session(*ASKED, finish)
    assert again.note(GOODBYE)
    assert again.state is State.LEAVING


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


def test_seats_do_not_mind_each_other() -> None:
    end = session(*ASKED, invite("other"))

    assert end.seat("m") is SeatState.ASKED
    assert end.seat("other") is SeatState.INVITED
    with pytest.raises(OutOfTurn):
        end.note(answer(1, "other"))


# ---- Answers


def test_an_answer_counts_once() -> None:
    assert session(*ASKED).note(answer()) is True
    assert session(*ANSWERED).note(answer()) is False


def test_an_answer_to_an_earlier_question_is_ignored() -> None:
    end = session(*ANSWERED, ask(2))

    assert end.note(answer(1)) is False
    assert end.seat("m") is SeatState.ASKED


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


def test_an_answer_before_any_question_is_out_of_turn() -> None:
    with pytest.raises(OutOfTurn, match="the latest ask is 'none'"):
        session(*SEATED, answer())


def test_an_ask_whose_name_is_no_number_can_be_answered_all_the_same() -> None:
    named = Ask("m", "m:" + "9" * 5000, Open(1, "A"), (), 0, 0)
    end = session(*SEATED, named)

    with pytest.raises(OutOfTurn):
        end.note(answer(1))
    assert end.note(Answer("m", named.ask, "bet"))


@pytest.mark.parametrize("message", [ready(), answer(), over()])
def test_what_crosses_an_over_on_the_wire_is_ignored(message: BotMessage | ArenaMessage) -> None:
    assert session(*ENDED).note(message) is False


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


# ---- Reconnecting


def test_after_a_lost_connection_the_seats_stand_as_they_stood() -> None:
    end = session(*ASKED)
    end.disconnected()
    for message in (*OPENED, invite(), ask()):
        end.note(message)

    assert end.seat("m") is SeatState.ASKED
    assert end.note(answer()) is True


def test_an_invitation_that_came_again_may_be_accepted_again() -> None:
    end = session(*ASKED)

    assert end.note(invite()) is True
    assert end.note(ready()) is False
    assert end.seat("m") is SeatState.ASKED


@pytest.mark.parametrize(
    ("before", "stands"),
    [
        ((*OPENED, invite()), SeatState.INVITED),
        (SEATED, SeatState.SEATED),
        (ASKED, SeatState.ASKED),
        (ANSWERED, SeatState.SEATED),
    ],
    ids=["invited", "seated", "asked", "answered"],
)
def test_what_is_past_counts_every_time_and_changes_nothing(
    before: tuple[BotMessage | ArenaMessage, ...], stands: SeatState
) -> None:
    end = session(*before)
    stood = copy.deepcopy(vars(end))

    for message in (past(1), past(2), past(1)):
        assert end.note(message) is True
    assert end.seat("m") is stands
    assert vars(end) == stood


def test_a_program_without_its_memory_is_told_and_then_asked() -> None:
    arena = session(*ASKED, answer(), ask(2))
    arena.disconnected()
    bot = session()
    said: list[BotMessage | ArenaMessage] = [*OPENED, invite(), ready(), past(1)]
    said.append(ask(2))
    counts = [(arena.note(message), bot.note(message)) for message in said]

    ready_again = (False, True)  # only to the one who remembers
    assert counts == [*[(True, True)] * 3, ready_again, *[(True, True)] * 2]
    assert (arena.note(answer(2)), bot.note(answer(2))) == (True, True)


# ---- Practice


def test_an_answer_that_is_refused_leaves_its_question_standing() -> None:
    for end in (session(*ANSWERED), session(*ANSWERED)):
        for _ in range(3):
            assert end.note(refuse()) is True
            assert end.seat("m") is SeatState.ASKED
            assert end.note(answer()) is True
            assert end.seat("m") is SeatState.SEATED
        assert end.note(ask(2)) is True
        assert (end.note(answer(1)), end.note(answer(2))) == (False, True)


@pytest.mark.parametrize("about", [None, "m", "x"])
def test_what_is_refused_without_an_ask_is_about_no_seat(about: str | None) -> None:
    end = session(*ASKED)

    assert end.note(Refused("malformed", "no", about)) is True
    assert end.seat("m") is SeatState.ASKED


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
