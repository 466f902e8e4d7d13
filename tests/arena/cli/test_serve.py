"""How `arena serve` is called; no socket is opened here. What it does is in tests/e2e."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.cli import serve
from arena.cli._ours import Teller
from arena.store import Store
from protocol.messages import Ending, Limits, Verdict

Run = Callable[..., Any]


class Call(msgspec.Struct):
    """What `arena serve` would have run."""

    contest: Any
    host: str
    port: int
    limits: Limits
    practice: bool
    db: str


@pytest.fixture
def called(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Call]:
    """Call `arena serve` in a folder of its own; what it would have run."""
    calls: list[Call] = []

    async def record(
        store: Store, contest: Any, host: str, port: int, limits: Limits, practice: bool
    ) -> None:
        db = Path(str(store.file)).name
        calls.append(Call(contest, host, port, limits, practice, db))

    monkeypatch.setattr(serve, "_serve", record)
    monkeypatch.delenv("ARENA_PORT", raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*words: str, config: str | None = None) -> Call:
        if config is not None:
            Path("class.toml").write_text(config)
            words = (*words, "--config", "class.toml")
        assert run("serve", *words)[::2] == (0, "")
        return calls.pop()

    return call


def test_without_anything_all_is_as_the_defaults_say(
    called: Callable[..., Call],
) -> None:
    call = called()

    assert (call.host, call.port, call.db) == ("127.0.0.1", 7700, "arena.db")
    assert (call.limits, call.practice) == (Limits(), False)
    assert [plan.limits for plan in call.contest.plans] == [Limits()] * 5
    assert call.contest.ours == ()

    other = called(config="")
    assert [file.name for file in other.contest.hidden] == ["class.toml"]
    contest = msgspec.structs.replace(other.contest, hidden=())
    assert call == msgspec.structs.replace(other, contest=contest)


def test_a_file_changes_the_defaults(called: Callable[..., Call]) -> None:
    call = called(
        config="""
        [serve]
        host = "::1"
        port = 1
        db = "class.db"
        players = 5
        matches = 3
        once = true
        practice = true
        [limits]
        bank_ms = 0
        [games.akq]
        hands = 10
        [games.gin]
        target = 30
        [[bot]]
        command = "sh"
        """
    )

    assert (call.host, call.port, call.db) == ("::1", 1, "class.db")
    assert (call.limits, call.practice) == (Limits(bank_ms=0), True)
    assert (call.contest.players, call.contest.once) == (5, True)
    for plan in call.contest.plans:
        assert (plan.matches, plan.limits) == (3, Limits(bank_ms=0))
    akq, gin = call.contest.plans[:2]
    assert (akq.settings.hands, gin.settings.target) == (10, 30)
    assert [bot.name for bot in call.contest.ours] == ["sh"]


def test_options_win_over_the_file(
    called: Callable[..., Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = """
        [serve]
        port = 1
        db = "class.db"
        matches = 3
        once = true
        practice = true
        [limits]
        bank_ms = 0
        memory_mib = 64
        [games.gin]
        target = 30
        max_turns = 40
        [[bot]]
        name = "ann"
        command = "sh"
        """
    words = "gin --port 2 --db my.db --matches 4 --no-once --no-practice --bank-ms 7"
    more = ("--set", "target=20", "--bot", "ben=sh")
    call = called(*words.split(), *more, config=config)

    assert (call.port, call.db, call.practice) == (2, "my.db", False)
    assert call.limits == Limits(bank_ms=7, memory_mib=64)
    [gin] = call.contest.plans
    assert (gin.settings.target, gin.settings.max_turns, gin.matches) == (20, 40, 4)
    assert not call.contest.once
    assert [bot.name for bot in call.contest.ours] == ["ann", "ben"]

    monkeypatch.setenv("ARENA_PORT", "3")
    assert called(config=config).port == 3


def test_an_open_interface_may_be_meant_in_the_file(
    called: Callable[..., Call],
) -> None:
    text = '[serve]\nhost = "0.0.0.0"\nopen = true'

    assert called(config=text).host == "0.0.0.0"


def test_bots_of_other_games_are_not_launched(called: Callable[..., Call]) -> None:
    config = "".join(
        f'[[bot]]\ncommand = "sh"\nname = "{game}"\ngame = "{game}"\n'
        for game in ("akq", "gin", "blackjack")
    )
    config += '[[bot]]\ncommand = "sh"\nname = "any"'

    assert [bot.name for bot in called("gin", config=config).contest.ours] == [
        "gin",
        "any",
    ]
    assert len(called(config=config).contest.ours) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--bot", ""), "expected a command line such as"),
        (("--bot", "no-such-program-at-all"), "expected a program on PATH"),
        (("--bot", "ann=sh", "--bot", "ann=sh -c x"), "got 'ann' twice"),
        (("--config", "nowhere.toml"), "nowhere.toml: cannot be read: "),
        (("--config", "bad.toml"), "bad.toml: [limits] tables: expected an integer"),
        (("--decision-ms", "0"), "--decision-ms"),
        (("--host", "0.0.0.0"), "expected --open if that is meant"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_is_called_wrong(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text("[limits]\ntables = 0")

    assert said in run("serve", *words).refusal()
    assert not Path("arena.db").exists()


# --- what is told ---


def verdict(bot: str, kind: Ending, text: str) -> Verdict:
    return Verdict(
        kind=kind,
        match="m",
        game="ace_king_queen",
        bot=bot,
        seat=0,
        text=text,
        bank_ms=0,
        limits=Limits(),
    )


def test_an_elimination_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    text = "memory 312 MiB > 256 MiB (sampled)"
    teller.ruled(verdict("mallory", Ending.MEMORY, text))
    teller.ruled(verdict("carol", Ending.CRASH, "crashed: exit\n\x1b[2Jstatus 1"))

    assert capsys.readouterr() == (
        "",
        "mallory (ace_king_queen) eliminated: memory 312 MiB > 256 MiB (sampled)\n"
        "carol (ace_king_queen) crashed: exit\ufffd\ufffd[2Jstatus 1\n",
    )


def test_what_a_verdict_has_said_is_not_said_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    teller = Teller()
    teller.ruled(verdict("ann", Ending.ILLEGAL, "answered 4"))
    teller.ruled(verdict("ben", Ending.CRASH, "crashed: exit status 1"))
    capsys.readouterr()
    for _ in range(2):
        for name in ("ann", "ben", "carol"):
            teller.ended(name, "crashed: exit status 1; it said: no")

    assert capsys.readouterr().err == (
        "ann has ended: crashed: exit status 1; it said: no\n"
        "carol has ended: crashed: exit status 1; it said: no\n"
    )


def test_matches_go_on_when_nobody_reads_what_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[object] = []

    def closed(*words: object, **options: object) -> None:
        told.append(words)
        raise BrokenPipeError

    monkeypatch.setattr("click.echo", closed)
    Teller().say("ann has ended")

    assert told == [("ann has ended",)]
