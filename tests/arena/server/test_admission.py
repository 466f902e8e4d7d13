"""Who is admitted, under which name, with which token: the cases in `admission.cases`, and tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.games.catalogue import GAMES
from arena.records.visibility import Viewer, ViewerKind
from arena.referee.bot_session import BotSession
from arena.referee.sessions import BotSessions
from arena.server.admission import Admission, Unwelcome
from arena.storage.tokens import Access, hashed
from protocol.errors import TOKEN_NEEDED
from protocol.messages import VERSION, Action, Hello, Instruct, Limits
from tests.support.cases import step_cases
from tests.support.fake_bots import FakeArena, FakeBot, FakeBotProcess

LIMITS = Limits(per_token=2, grace_ms=1000)
ANN, BEN, PROF = "ann's", "ben's", "prof's"
ROSTER = Access(
    names=frozenset({"ann", "ben", "revoked"}),
    players={hashed(ANN): "ann", hashed(BEN): "ben"},
    instructors={hashed(PROF): "prof"},
)
NEEDED = ("token", TOKEN_NEEDED)


@pytest.mark.parametrize("steps", step_cases(Path(__file__).with_name("admission.cases")))
def test_a_case_of_admission(house: FakeArena, steps: list[str]) -> None:
    door = AdmissionToSessions(house)
    for step in steps:
        door.does(step)
    assert door.gone == []


def fields_of(words: tuple[str, ...]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


class AdmissionToSessions:
    """An admission, the sessions that it knows, and what the steps of a case do there."""

    def __init__(self, house: FakeArena) -> None:
        self._house = house
        self._bots: dict[str, FakeBot] = {}
        self._processes: dict[str, FakeBotProcess | None] = {}
        self._first_secrets: dict[str, str] = {}
        self._said = ""
        self.players = BotSessions()
        self.admission = Admission(self.players, LIMITS)
        self.gone: list[tuple[BotSession, str, bool]] = []

    def does(self, step: str) -> None:
        said, _, outcome = step.partition(" : ")
        if outcome:
            assert self._outcome(*said.split()) == outcome, said
            return
        first, _, rest = step.partition(" ")
        do = getattr(self, f"do_{first}")
        do(*([rest] if first in ("says", "goes") else rest.split()))

    def _outcome(self, first: str, *words: str) -> str:
        """What comes of a hello, or of what somebody else asks for."""
        asks = getattr(self, f"asks_{first}", None)
        try:
            return str(asks(*words) if asks else self._says_hello(first, *words))
        except Unwelcome as why:
            self._said = str(why)
            is_needed = (why.code, self._said) == NEEDED
            return "needed" if is_needed else f"refused {why.code}"

    def _says_hello(self, name: str, *words: str) -> str:
        fields: dict[str, Any] = fields_of(words)
        about = {"address": fields.pop("address", "")}
        if who := fields.pop("vouched", None):
            about["known"] = (who, self._processes.get(who))
        if "games" in fields:
            fields["games"] = tuple(fields["games"].split(","))
        if "protocol" in fields:
            fields["protocol"] = int(fields["protocol"])
        if "resume" in fields:
            fields["resume"] = self._secret(fields["resume"])
            player = self.admission.resumed(hello(spelled(name), **fields))
            return "anew" if player is None else f"resumes {player.name}"
        called, process = self.admission.admitted(hello(spelled(name), **fields), **about)
        assert process is self._processes.get(called)
        return called

    def asks_instructs(self, token: str, protocol: str = "1") -> str:
        message = Instruct(int(protocol), token.removeprefix("-"), Action.STATUS)
        who = self.admission.instructs(message)
        assert self.admission.is_instructors(token)
        return who

    def asks_person(self, name: str, kind: str = "public", owner: str = "") -> str:
        """Somebody at the page, who wants to play under that name."""
        self.admission.check_guest(spelled(name), Viewer(ViewerKind(kind), owner))
        return "welcome"

    def asks_viewer(self, token: str | None = None) -> str:
        """Somebody who looks on."""
        words = {"-": "", "hash": hashed(ANN)}
        viewer = self.admission.viewer(words.get(token, token) if token else None)
        return f"{viewer.kind} {viewer.name}".strip()

    def _secret(self, resume: str) -> str | None:
        whose = resume.removeprefix("first-of-")
        if whose != resume:
            return self._first_secrets[whose]
        if resume == "none":
            return None
        return self._bots[resume].player.secret if resume in self._bots else resume

    def do_says(self, text: str) -> None:
        assert self._said == text.replace("GAMES", ", ".join(GAMES))

    # --- the arena ---

    def do_open(self, *limits: str) -> None:
        self._begin(Access(), *limits)

    def do_listed(self, *words: str) -> None:
        """With the usual roster, or with the names and tokens that are given."""
        tokens = {name: value for name, value in fields_of(words).items() if name != "per_address"}
        players = {hashed(token): name for name, token in tokens.items()}
        own = Access(names=frozenset(tokens), players=players)
        self._begin(own if tokens else ROSTER, *words)

    def do_closed(self) -> None:
        self.admission = Admission(self.players, LIMITS, ROSTER, requires_token=True)

    def _begin(self, access: Access, *words: str) -> None:
        most = int(fields_of(words).get("per_address", LIMITS.per_address))
        limits = msgspec.structs.replace(LIMITS, per_address=most)
        self.admission = Admission(self.players, limits, access)

    def do_process(self, name: str) -> None:
        self._processes[name] = self._house.launched("x").process

    def do_expect(self, name: str, token: str) -> None:
        self.admission.expect(name, token, self._processes.get(name))

    def do_forget(self, name: str, how: str = "") -> None:
        kind, _, token = how.partition("=")
        self.admission.forget(name, keeps_name=kind == "kept", token=token)

    def do_spelled(self, name: str) -> None:
        self.players.spellings.add(name)

    def do_roster(self, *words: str) -> None:
        """The roster changes: tokens by names, and all names if `names` says more than these."""
        tokens = fields_of(words)
        names = tokens.pop("names", None)
        all_names = frozenset(names.split(",")) if names else ROSTER.names | tokens.keys()
        players = {hashed(token): name for name, token in tokens.items()}
        self.gone = list(self.admission.change(Access(names=all_names, players=players)))

    def do_goes(self, about: str) -> None:
        name, text, *for_good = about.split(", ")
        player = self._bots[name].player
        assert self.gone.pop(0) == (player, text, for_good == ["for good"])
        self.players.remove(player)  # the gateway does

    def do_nobody(self, _goes: str) -> None:
        assert self.gone == []

    # --- those who are here ---

    def do_here(self, name: str, *words: str) -> None:
        """A bot that was admitted before."""
        fields = fields_of(words)
        bot = self._house.bot(name)
        bot.player.name = called = fields.get("called", name)
        bot.player.token = fields.get("token")
        self._bots[called] = bot
        self._first_secrets[called] = bot.player.secret
        self.players.add(bot.player)

    def do_plays(self, name: str) -> None:
        self._house.open(self._bots[name], self._house.bot("x"))

    def do_leaves(self, name: str) -> None:
        self._bots[name].goes()

    def do_back(self, name: str) -> None:
        """It comes back with its first session; it may not have read the welcome yet."""
        player = self._bots[name].player
        connection, first = player.connection, self._first_secrets[name]
        assert connection is not None
        player.disconnected()
        player.resumed(hello(name, resume=first), connection)

    def do_heard(self, name: str) -> None:
        self._bots[name].player.note_welcome_arrived()


def spelled(name: str) -> str:
    """A name with letters that cannot be seen, which are written by number."""
    return re.sub(r"\\u(....)", lambda found: chr(int(found[1], 16)), name)


def hello(name: str = "ann", **fields: Any) -> Hello:
    plain = Hello(VERSION, name, ("ace_king_queen",))
    return msgspec.structs.replace(plain, **fields)


def test_a_token_is_not_kept_in_clear() -> None:
    admission = Admission(BotSessions(), LIMITS)
    admission.expect("mine", "secret-token")

    assert "secret-token" not in repr(vars(admission))


@pytest.mark.parametrize("token", [None, "", "guessed", BEN.upper(), hashed(ANN)])
@pytest.mark.parametrize("name", ["ann", "nobody"])
def test_where_tokens_are_required_all_others_are_told_the_same(
    house: FakeArena, token: str | None, name: str
) -> None:
    door = AdmissionToSessions(house)
    door.do_closed()
    door.do_here("nobody")
    for more in ({}, {"protocol": 7}, {"games": ("chess",)}, {"resume": "x"}):
        greets = hello(name, token=token, **more)
        check = door.admission.resumed if greets.resume else door.admission.admitted
        with pytest.raises(Unwelcome) as why:
            check(greets)
        assert (why.value.code, str(why.value)) == NEEDED
