"""Who is admitted, under which name, with which token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.games import GAMES
from arena.records.visibility import Viewer, ViewerKind
from arena.referee.bot_session import BotSession
from arena.referee.sessions import BotSessions
from arena.server.admission import GUEST, TOKEN_NEEDED, Admission, Unwelcome
from arena.storage.tokens import Access, hashed
from protocol.messages import VERSION, Action, Hello, Instruct, Limits

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeArena

LIMITS = Limits(per_token=2, grace_ms=1000)


class AdmissionToSessions:
    """An admission, and the sessions that it knows."""

    def __init__(self, house: FakeArena) -> None:
        self.house = house
        self.players = BotSessions()
        self.admission = Admission(self.players, LIMITS)

    def comes(self, name: str, token: str | None = None) -> BotSession:
        """A bot that was admitted before."""
        player = self.house.bot(name).player
        player.token = token
        self.players.add(player)
        return player

    def asks(self, name: str = "ann", **fields: Any) -> tuple[str, object]:
        """The name of a bot that says hello."""
        return self.admission.admitted(hello(name, **fields))

    def refuses(self, name: str = "ann", **fields: Any) -> tuple[str, str]:
        """The code and the text with which it is refused."""
        with pytest.raises(Unwelcome) as why:
            self.asks(name, **fields)
        return why.value.code, str(why.value)

    def resumes(self, name: str, session: str, token: str | None = None) -> Any:
        return self.admission.resumed(hello(name, resume=session, token=token))


def hello(name: str = "ann", **fields: Any) -> Hello:
    plain = Hello(VERSION, name, ("ace_king_queen",))
    return msgspec.structs.replace(plain, **fields)


@pytest.fixture
def door(house: FakeArena) -> AdmissionToSessions:
    return AdmissionToSessions(house)


# --- new bots ---


def test_a_new_bot_is_called_what_it_says(door: AdmissionToSessions) -> None:
    assert door.asks("ann") == ("ann", None)
    assert door.asks("ann", token="whatever") == ("ann", None)


def test_another_version_is_refused(door: AdmissionToSessions) -> None:
    assert door.refuses(protocol=7) == ("version", "expected protocol 1, got 7")


def test_an_unknown_game_is_refused_with_those_that_there_are(door: AdmissionToSessions) -> None:
    code, text = door.refuses(games=("blackjack", "chess"))

    assert code == "games"
    assert text == f"unknown game 'chess'; expected some of: {', '.join(GAMES)}"


def test_a_name_of_one_that_is_here_is_taken(door: AdmissionToSessions) -> None:
    door.comes("ann")

    assert door.refuses("ann") == ("name", "a bot named 'ann' is here already; choose another name")
    assert door.asks("ben") == ("ben", None)


def test_a_name_of_one_that_plays_and_may_come_back_is_taken(
    door: AdmissionToSessions, house: FakeArena
) -> None:
    ann = house.bot("ann")
    door.players.add(ann.player)
    house.open(ann, house.bot("ben"))
    ann.goes()

    assert door.refuses("ann") == (
        "name",
        "a bot named 'ann' has lost its connection: the name is free again in 1 s, "
        "or go on with `resume`; or choose another name",
    )


def test_a_name_of_one_that_has_left_nothing_behind_is_free(
    door: AdmissionToSessions, house: FakeArena
) -> None:
    door.comes("ann").disconnected()

    assert door.asks("ann") == ("ann", None)


# --- tokens ---


def test_so_many_connections_may_be_open_with_one_token(
    door: AdmissionToSessions, house: FakeArena
) -> None:
    door.comes("ann", token="class")
    ben = door.comes("ben", token="class")
    door.comes("cem", token="another")

    assert door.refuses("dora", token="class") == (
        "token",
        "expected at most 2 connections with one token",
    )
    assert door.asks("dora", token="another") == ("dora", None)
    assert door.asks("dora") == ("dora", None)

    ben.disconnected()

    assert door.asks("dora", token="class") == ("dora", None)


def test_bots_without_a_token_are_counted_by_address(door: AdmissionToSessions) -> None:
    limits = msgspec.structs.replace(LIMITS, per_address=3)
    door.admission = Admission(door.players, limits)
    for name in ("ann", "ben", "cem"):
        door.comes(name)
    door.comes("eve", token="secret")
    again = hello("dora")

    with pytest.raises(Unwelcome, match="at most 3 connections without a token"):
        door.admission.admitted(again, address="10.0.0.1")
    assert door.admission.admitted(again, address="10.0.0.2") == ("dora", None)
    with_token = msgspec.structs.replace(again, token="mine")
    assert door.admission.admitted(with_token, address="10.0.0.1") == ("dora", None)


def test_a_token_keeps_the_name_of_a_bot_that_is_away(
    door: AdmissionToSessions, house: FakeArena
) -> None:
    ann = house.bot("ann")
    ann.player.token = "secret"
    door.players.add(ann.player)
    ann.goes()

    assert door.refuses("ann")[0] == "name"
    assert door.refuses("ann", token="guessed")[0] == "name"
    assert door.asks("ann", token="secret") == ("ann", None)


def test_a_token_that_is_expected_names_the_bot(
    door: AdmissionToSessions, house: FakeArena
) -> None:
    process = house.launched("x").process
    door.admission.expect("mine", "secret", process)

    assert door.asks("whatever it says", token="secret") == ("mine", process)


def test_a_token_that_is_expected_is_good_once(door: AdmissionToSessions) -> None:
    door.admission.expect("mine", "secret")
    door.asks("child", token="secret")

    assert door.refuses("child", token="secret") == (
        "token",
        "this token was for once; go on with `resume`",
    )


def test_a_hello_that_is_refused_does_not_use_the_token_up(door: AdmissionToSessions) -> None:
    door.admission.expect("mine", "secret")
    door.refuses(protocol=2, token="secret")
    door.refuses(games=("chess",), token="secret")

    assert door.asks(token="secret") == ("mine", None)


def test_a_name_that_is_expected_is_kept(door: AdmissionToSessions) -> None:
    door.admission.expect("mine", "secret")
    kept = (
        "name",
        "'mine' is kept for a bot that the arena has launched, which says its ARENA_TOKEN as "
        "`token`; choose another name",
    )

    assert door.refuses("mine") == kept
    assert door.refuses("mine", token="guessed") == kept

    door.asks(token="secret")

    assert door.refuses("mine") == kept, "whether it is connected or not"

    door.admission.forget("mine")

    assert door.asks("mine") == ("mine", None)


def test_who_is_on_the_roster_is_told_what_to_do_about_a_name_that_is_kept(
    listed: AdmissionToSessions,
) -> None:
    listed.admission.expect("ann", "secret")
    code, said = listed.refuses("ann", token=ANN)

    assert code == "name"
    assert said.endswith(
        "; ask the instructor to rename the [[bot]] in the arena's config that has this name, "
        "or call this one 'ann/…'"
    )
    assert listed.asks("ann/gin", token=ANN)[0] == "ann/gin"


def test_who_is_known_by_its_connection_keeps_its_name_without_a_token(
    door: AdmissionToSessions,
) -> None:
    door.admission.expect("mine", "secret")
    door.admission.forget("mine", keeps_name=True)

    assert door.refuses("mine")[0] == "name"
    assert door.asks("x", token="secret") == ("x", None), "nobody is expected any more"


def test_who_is_not_expected_any_more_is_a_stranger(door: AdmissionToSessions) -> None:
    door.admission.expect("mine", "secret")
    door.admission.expect("other", "secret 2")
    door.admission.forget("mine")

    assert door.asks("mine", token="secret") == ("mine", None)
    assert door.asks("x", token="secret 2") == ("other", None)


def test_a_token_is_not_kept_in_clear(door: AdmissionToSessions) -> None:
    door.admission.expect("mine", "secret-token")

    assert "secret-token" not in repr(vars(door.admission))


# --- connections that leave no doubt ---


def test_a_vouched_connection_needs_neither_name_nor_token(
    door: AdmissionToSessions, house: FakeArena
) -> None:
    process = house.launched("x").process
    door.comes("ann")

    known = ("mine", process)
    assert door.admission.admitted(hello("ann"), known) == known


def test_a_vouched_connection_must_speak_the_protocol_all_the_same(
    door: AdmissionToSessions,
) -> None:
    with pytest.raises(Unwelcome, match="expected protocol 1, got 2"):
        door.admission.admitted(hello(protocol=2), ("mine", None))
    with pytest.raises(Unwelcome, match="unknown game 'chess'"):
        door.admission.admitted(hello(games=("chess",)), ("mine", None))


# --- sessions ---


def test_a_hello_without_a_session_resumes_none(door: AdmissionToSessions) -> None:
    door.comes("ann")

    assert door.admission.resumed(hello("ann")) is None


@pytest.mark.parametrize("token", [None, "token"])
def test_a_session_is_resumed_with_its_name_and_token(
    door: AdmissionToSessions, token: str | None
) -> None:
    ann = door.comes("ann", token)
    door.comes("ben", token)

    assert door.resumes("ann", ann.secret, token) is ann


def test_a_session_is_resumed_by_the_name_that_the_bot_calls_itself(
    door: AdmissionToSessions, house: FakeArena
) -> None:
    player = house.bot("its own name").player
    player.name = "mine"
    door.players.add(player)

    assert door.resumes("its own name", player.secret) is player
    assert door.resumes("mine", player.secret) is player


def test_a_session_is_not_resumed_in_another_version(door: AdmissionToSessions) -> None:
    ann = door.comes("ann")

    with pytest.raises(Unwelcome) as why:
        door.admission.resumed(hello("ann", resume=ann.secret, protocol=2))

    assert why.value.code == "version"


@pytest.mark.parametrize("what", ["name", "session", "former", "token", "no token"])
def test_a_session_is_not_resumed_unless_all_fits(
    door: AdmissionToSessions, house: FakeArena, what: str
) -> None:
    ann, ben = door.comes("ann", "token"), door.comes("ben", "token")
    former = ann.secret
    ann.disconnected()
    ann.resumed(hello("ann", resume=former), ben.connection)  # type: ignore[arg-type]
    ann.note_welcome_arrived()
    wrong = {
        "name": ("ben", ann.secret, "token"),
        "session": ("ann", ben.secret, "token"),
        "former": ("ann", former, "token"),
        "token": ("ann", ann.secret, "another"),
        "no token": ("ann", ann.secret, None),
    }

    with pytest.raises(Unwelcome) as why:
        door.resumes(*wrong[what])
    assert why.value.code == "session"
    assert str(why.value) == "no such session to resume; say hello without it"
    assert door.resumes("ann", ann.secret, "token") is ann


def test_a_welcome_that_was_lost_on_its_way_locks_nobody_out(
    door: AdmissionToSessions, house: FakeArena
) -> None:
    ann, ben = door.comes("ann", "token"), door.comes("ben", "token")
    former = ann.secret
    for _ in range(2):
        ann.disconnected()
        again = hello("ann", resume=former)
        ann.resumed(again, ben.connection)  # type: ignore[arg-type]

        assert door.resumes("ann", former, "token") is ann
        assert door.resumes("ann", ann.secret, "token") is ann


@pytest.mark.parametrize("session", ["", "0" * 32, "ü" * 32])
def test_a_session_that_never_was_is_not_resumed(door: AdmissionToSessions, session: str) -> None:
    door.comes("ann")

    with pytest.raises(Unwelcome, match="no such session"):
        door.resumes("ann", session)


# --- a roster ---

ANN, BEN = "ann's token", "ben's token"
ROSTER = Access(
    names=frozenset({"ann", "ben", "revoked"}),
    players={hashed(ANN): "ann", hashed(BEN): "ben"},
    instructors={hashed("the instructor's"): "prof"},
)
NEEDED = ("token", TOKEN_NEEDED)


@pytest.fixture
def listed(door: AdmissionToSessions) -> AdmissionToSessions:
    """On this machine: names of the roster need their tokens."""
    door.admission = Admission(door.players, LIMITS, ROSTER)
    return door


@pytest.fixture
def closed(door: AdmissionToSessions) -> AdmissionToSessions:
    """Elsewhere: everybody needs a token."""
    door.admission = Admission(door.players, LIMITS, ROSTER, requires_token=True)
    return door


@pytest.mark.parametrize(
    ("said", "called"),
    [
        ("ann", "ann"),
        ("whatever", "ann"),
        ("ben", "ann"),
        ("ben/gin", "ann"),
        ("ann/", "ann"),
        ("anna/gin", "ann"),
        ("ann/gin", "ann/gin"),
        ("ann/gin/2", "ann/gin/2"),
        ("ANN", "ann"),
        ("ANN/gin", "ann/gin"),
        ("Ａnn/Gin", "ann/Gin"),
        ("ann/\u3164", "ann"),
        ("BEN/gin", "ann"),
    ],
)
def test_a_token_of_the_roster_names_the_bot(
    closed: AdmissionToSessions, said: str, called: str
) -> None:
    assert closed.asks(said, token=ANN) == (called, None)


@pytest.mark.parametrize("token", [None, "", "guessed", BEN.upper(), hashed(ANN)])
@pytest.mark.parametrize("name", ["ann", "nobody"])
def test_where_tokens_are_required_all_others_are_told_the_same(
    closed: AdmissionToSessions, token: str | None, name: str
) -> None:
    closed.comes("nobody")
    for more in ({}, {"protocol": 7}, {"games": ("chess",)}, {"resume": "x"}):
        greets = hello(name, token=token, **more)
        check = closed.admission.resumed if greets.resume else closed.admission.admitted
        with pytest.raises(Unwelcome) as why:
            check(greets)
        assert (why.value.code, str(why.value)) == NEEDED


def test_a_good_token_learns_what_else_is_wrong(closed: AdmissionToSessions) -> None:
    closed.comes("ann")

    assert closed.refuses("x", token=ANN, protocol=7)[0] == "version"
    assert closed.refuses("x", token=ANN, games=("chess",))[0] == "games"
    assert closed.refuses("x", token=ANN) == (
        "name",
        "a bot named 'ann' is here already; call this one 'ann/…'",
    )
    with pytest.raises(Unwelcome, match="no such session"):
        closed.resumes("ann", "0" * 32, ANN)


@pytest.mark.parametrize("name", ["ann", "ann/gin", "revoked"])
def test_a_name_of_the_roster_needs_its_token_on_this_machine_too(
    listed: AdmissionToSessions, name: str
) -> None:
    assert listed.refuses(name) == NEEDED
    assert listed.refuses(name, token="guessed") == NEEDED


def test_other_names_are_free_on_this_machine(listed: AdmissionToSessions) -> None:
    assert listed.asks("zed") == ("zed", None)
    assert listed.refuses("anna", token="my own word") == NEEDED, "it is a mistake"


def test_a_bot_that_the_arena_has_launched_needs_only_its_own_token(
    closed: AdmissionToSessions, house: FakeArena
) -> None:
    process = house.launched("x").process
    closed.admission.expect("mine", "secret", process)

    assert closed.asks("x", token="secret") == ("mine", process)
    assert closed.admission.admitted(hello("x"), ("piped", None)) == ("piped", None)


def test_so_many_connections_may_be_open_with_a_token_of_the_roster(
    closed: AdmissionToSessions,
) -> None:
    closed.comes("ann", ANN)
    closed.comes("ann/gin", ANN)

    assert closed.refuses("ann/21", token=ANN)[0] == "token"
    assert closed.asks("ben", token=BEN) == ("ben", None)


def test_with_a_roster_those_without_a_token_are_counted_by_address(
    door: AdmissionToSessions,
) -> None:
    limits = msgspec.structs.replace(LIMITS, per_address=1)
    door.admission = Admission(door.players, limits, ROSTER)
    door.comes("ann", ANN)
    door.admission.admitted(hello("zed"), address="10.0.0.1")
    door.comes("zed")

    with pytest.raises(Unwelcome, match="at most 1 connections without a token"):
        door.admission.admitted(hello("eve"), address="10.0.0.1")
    ben = hello("ben", token=BEN)
    assert door.admission.admitted(ben, address="10.0.0.1") == ("ben", None)


# --- the roster changes ---


def changed(**fields: Any) -> Access:
    return msgspec.structs.replace(ROSTER, **fields)


@pytest.mark.parametrize(
    ("players", "text", "is_out"),
    [
        ({hashed("new"): "ann", hashed(BEN): "ben"}, "its token was replaced", False),
        ({hashed(BEN): "ben"}, "its token was revoked", True),
    ],
)
def test_whose_token_is_good_no_longer_has_to_go(
    listed: AdmissionToSessions, players: dict[str, str], text: str, is_out: bool
) -> None:
    ann, gin = listed.comes("ann", ANN), listed.comes("ann/gin", ANN)
    listed.comes("ben", BEN)
    listed.comes("zed", "a word")

    assert listed.admission.change(changed(players=players)) == (
        (ann, text, is_out),
        (gin, text, is_out),
    )
    assert listed.refuses("ann", token=ANN) == NEEDED
    listed.players.remove(ann)  # the gateway does
    with pytest.raises(Unwelcome, match=TOKEN_NEEDED):
        listed.resumes("ann", ann.secret, ANN)


def test_who_came_while_its_name_was_changed_may_come_back_with_its_token(
    listed: AdmissionToSessions,
) -> None:
    gin = listed.comes("ann/gin", ANN)
    renamed = Access(
        names=frozenset({"anna", "ben"}), players={hashed(ANN): "anna", hashed(BEN): "ben"}
    )

    assert listed.admission.change(renamed) == (
        (gin, "its name on the roster is 'anna' now", False),
    )
    listed.players.remove(gin)  # the gateway does
    assert listed.asks("ann/gin", token=ANN)[0] == "anna"


def test_a_person_who_comes_too_late_is_no_bot(door: AdmissionToSessions) -> None:
    door.admission.expect("pat", GUEST + "1")
    door.admission.forget("pat", token=GUEST + "1")

    assert "sit down again" in door.refuses("pat", token=GUEST + "1")[1]
    assert door.asks("pat", token="a word")[0] == "pat"


def test_who_is_on_the_roster_still_may_stay(listed: AdmissionToSessions) -> None:
    listed.comes("ann", ANN)
    listed.comes("ben/gin", BEN)
    more = {**ROSTER.players, hashed("cem's"): "cem"}

    assert listed.admission.change(changed(players=more)) == ()


def test_who_has_a_name_that_is_somebodys_now_has_to_go(
    listed: AdmissionToSessions, house: FakeArena
) -> None:
    listed.admission.expect("cem/launched", "secret")
    listed.comes("cem/launched", "secret")
    cem = listed.comes("cem/gin", "a word")
    listed.comes("zed")
    names = ROSTER.names | {"cem"}
    players = {**ROSTER.players, hashed("cem's"): "cem"}

    gone = listed.admission.change(changed(names=names, players=players))
    assert gone == ((cem, "its name is on the roster now", False),)


# --- instructors ---


def instruct(token: str, protocol: int = VERSION) -> Instruct:
    return Instruct(protocol, token, Action.STATUS)


def test_an_instructor_is_known_by_the_token(listed: AdmissionToSessions) -> None:
    assert listed.admission.instructs(instruct("the instructor's")) == "prof"
    assert listed.admission.is_instructors("the instructor's")


@pytest.mark.parametrize("token", ["", "guessed", ANN])
def test_nobody_else_instructs(listed: AdmissionToSessions, token: str) -> None:
    for protocol in (VERSION, 7):
        with pytest.raises(Unwelcome) as why:
            listed.admission.instructs(instruct(token, protocol))
        assert (why.value.code, str(why.value)) == NEEDED


def test_an_instructor_of_another_version_is_told_so(listed: AdmissionToSessions) -> None:
    with pytest.raises(Unwelcome, match="expected protocol 1, got 7") as why:
        listed.admission.instructs(instruct("the instructor's", 7))
    assert why.value.code == "version"


def test_an_instructors_token_is_none_of_a_player(closed: AdmissionToSessions) -> None:
    assert closed.refuses("prof", token="the instructor's") == NEEDED


def test_without_a_roster_nobody_instructs(door: AdmissionToSessions) -> None:
    with pytest.raises(Unwelcome, match=TOKEN_NEEDED):
        door.admission.instructs(instruct(""))


# --- people at the page ---


@pytest.mark.parametrize(
    ("name", "viewer"),
    [
        ("pat", Viewer()),
        ("pat", Viewer(ViewerKind.INSTRUCTOR)),
        ("ann/me", Viewer(ViewerKind.OWNER, "ann")),
    ],
)
def test_a_person_is_called_what_nobody_else_is(
    listed: AdmissionToSessions, name: str, viewer: Viewer
) -> None:
    listed.admission.check_guest(name, viewer)


@pytest.mark.parametrize(
    ("name", "viewer", "code"),
    [
        ("ann", Viewer(), "token"),
        ("ann/me", Viewer(ViewerKind.INSTRUCTOR), "token"),
        ("ben/me", Viewer(ViewerKind.OWNER, "ann"), "token"),
        ("zed", Viewer(), "name"),
        ("kept", Viewer(), "name"),
    ],
)
def test_a_person_takes_nobodys_name(
    listed: AdmissionToSessions, name: str, viewer: Viewer, code: str
) -> None:
    listed.comes("zed")
    listed.admission.expect("kept", "a secret")
    with pytest.raises(Unwelcome) as why:
        listed.admission.check_guest(name, viewer)

    assert why.value.code == code


def test_where_bots_need_a_token_people_do(closed: AdmissionToSessions) -> None:
    with pytest.raises(Unwelcome, match=TOKEN_NEEDED):
        closed.admission.check_guest("pat", Viewer())
    closed.admission.check_guest("pat", Viewer(ViewerKind.INSTRUCTOR))
    closed.admission.check_guest("ann/me", Viewer(ViewerKind.OWNER, "ann"))


# --- those who look on ---


@pytest.mark.parametrize(
    ("token", "viewer"),
    [
        (None, Viewer()),
        (ANN, Viewer(ViewerKind.OWNER, "ann")),
        ("the instructor's", Viewer(ViewerKind.INSTRUCTOR, "prof")),
    ],
)
def test_who_looks_on_is_told_by_its_token(
    closed: AdmissionToSessions, token: str | None, viewer: Viewer
) -> None:
    assert closed.admission.viewer(token) == viewer


@pytest.mark.parametrize("token", ["", "guessed", hashed(ANN)])
def test_a_token_that_is_nobodys_shows_nothing(listed: AdmissionToSessions, token: str) -> None:
    with pytest.raises(Unwelcome) as why:
        listed.admission.viewer(token)

    assert (why.value.code, str(why.value)) == NEEDED


# --- names that look alike ---


@pytest.mark.parametrize("name", ["ANN", "Ａnn", "a\u034fnn", "ann\u3164"])
def test_a_name_that_looks_like_one_that_is_here_is_taken(
    door: AdmissionToSessions, name: str
) -> None:
    door.comes("ann")

    assert door.refuses(name) == ("name", "a bot named 'ann' is here already; choose another name")


def test_a_name_is_shown_as_it_was_written_first(
    door: AdmissionToSessions, house: FakeArena
) -> None:
    door.players.spellings.add("Ann")  # who plays in a competition

    assert door.asks("ann") == ("Ann", None)

    door.comes("Ann").disconnected()

    assert door.asks("ANN") == ("Ann", None)


def test_names_below_one_owner_begin_as_the_first_did(door: AdmissionToSessions) -> None:
    door.comes("Ann/1")

    assert door.asks("ANN/2") == ("Ann/2", None)
    assert door.refuses("ann/1")[0] == "name"


@pytest.mark.parametrize("name", ["Ann", "ANN", "ａｎｎ", "a\u034fnn/gin", "REVOKED"])
def test_a_name_that_looks_like_one_of_the_roster_needs_its_token(
    listed: AdmissionToSessions, name: str
) -> None:
    assert listed.refuses(name) == NEEDED
    with pytest.raises(Unwelcome, match=TOKEN_NEEDED):
        listed.admission.check_guest(name, Viewer())


def test_a_program_of_somebodys_keeps_its_first_spelling(closed: AdmissionToSessions) -> None:
    closed.comes("ann/Gin", ANN)

    assert closed.refuses("ANN/GIN", token=ANN)[0] == "name"


def test_the_rosters_spelling_wins_over_an_earlier_one(closed: AdmissionToSessions) -> None:
    closed.players.spellings.add("ANN/gin")

    assert closed.asks("ann/GIN", token=ANN) == ("ann/GIN", None)


def test_two_that_a_roster_has_long_had_stay_two(door: AdmissionToSessions) -> None:
    both = Access(names=frozenset({"ann", "Ann"}), players={hashed("1"): "ann", hashed("2"): "Ann"})
    door.admission = Admission(door.players, LIMITS, both)
    door.comes("ann", "1")

    assert door.asks("ANN", token="2") == ("Ann", None)
    assert door.refuses("ANN") == NEEDED


def test_who_comes_without_a_token_has_to_go_when_one_like_it_is_on_the_roster(
    door: AdmissionToSessions,
) -> None:
    player = door.comes("ANN")

    assert door.admission.change(ROSTER) == ((player, "its name is on the roster now", False),)


def test_a_name_that_is_kept_is_kept_however_it_is_spelled(door: AdmissionToSessions) -> None:
    door.admission.expect("mine", "a secret")

    assert "kept for a bot" in door.refuses("MINE")[1]

    door.admission.forget("mine")

    assert door.asks("MINE") == ("MINE", None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("\u3164\u115f", "expected a name with letters that can be seen"),
        ("ann／gin", "expected a plain '/' in a name, got 'ann\\uff0fgin'"),
    ],
)
def test_a_name_that_pretends_is_refused(door: AdmissionToSessions, name: str, text: str) -> None:
    assert door.refuses(name) == ("name", text)


def test_a_person_takes_no_name_that_looks_like_a_bots(listed: AdmissionToSessions) -> None:
    listed.comes("zed")
    with pytest.raises(Unwelcome, match="named 'zed' is here"):
        listed.admission.check_guest("ZED", Viewer())


def test_a_session_goes_on_under_the_name_that_the_bot_says(door: AdmissionToSessions) -> None:
    door.players.spellings.add("Ann")
    name, _ = door.asks("ANN")
    player = door.house.bot("ANN").player
    player.name = name
    door.players.add(player)

    assert door.resumes("ANN", player.secret) is player
    assert door.resumes("Ann", player.secret) is player
