"""`arena check-game`: no alarm for games that keep to the conventions, and a line for each breach.

The broken games are packages as `arena new-game` writes them, each with one mistake. One process
checks them all.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from arena.authoring import game_check
from arena.authoring.game_check import check_game
from arena.engine.rules import Game
from arena.games import GAMES
from tests.support.game_packages import Edits, install_game
from tests.support.toy_games import write_toy

_CHECKS = """
import sys
from arena.cli import main
for name in sys.argv[1:]:
    main(["check-game", name, "--seed", "1", "--matches", "20", "--json"])
"""

_NO_HOLDS = ("    holds=lambda deck, seat: deck[seat : seat + 1],\n", "")
_ASKS = "Act(number, cards[seat], tuple(actions))"
_CLOSES = "    yield TellSeat(EVERYONE, RoundOver(number, shown, paid, tuple(board.scores)))\n"
_ENDLESS = (
    "import Iterable, Iterator, Sequence\n",
    "import Iterable, Iterator, Sequence\nfrom itertools import count\n",
)
_ROUNDS = "range(1, settings.rounds + 1)"
_SHOWS_OTHER: tuple[tuple[str, str], ...] = (
    ("    actions: tuple", "    other: Card\n    actions: tuple"),
)
_ASKS_WITH = "Act(number, cards[seat], {}, tuple(actions))"


class Mistake(NamedTuple):
    """What is changed in a game, and the line that says so."""

    says: str
    edits: Edits
    seats: int = 2


def rules(*edits: tuple[str, str], **more: tuple[tuple[str, str], ...]) -> Edits:
    return {"rules.py": edits, **{f"{part}.py": changes for part, changes in more.items()}}


def vocabulary(*edits: tuple[str, str]) -> Edits:
    return {"vocabulary.py": edits}


def bots(*edits: tuple[str, str]) -> Edits:
    return {"bots.py": edits}


MISTAKES = {
    "closes_never": Mistake(
        "closes: `round_over` is not told in round 1, before `dealt` opens round 2",
        rules((_CLOSES, "")),
    ),
    "closes_never_at_the_end": Mistake(
        "closes: `round_over` is not told in round 6, after which the match ends",
        rules((_CLOSES, f"    if number < 6:\n    {_CLOSES}")),
    ),
    "closes_twice": Mistake(
        "closes: `round_over` is told again after round 1", rules((_CLOSES, _CLOSES * 2))
    ),
    "closes_for_one_seat": Mistake(
        "closes: `round_over` is told to seat 1, expected once to EVERYONE",
        rules((_CLOSES, _CLOSES.replace("EVERYONE", "0"))),
    ),
    "closes_seat_by_seat": Mistake(
        "closes: `round_over` is told to seat 1, expected once to EVERYONE",
        rules(
            (_CLOSES, f"    for seat in range(SEATS):\n    {_CLOSES.replace('EVERYONE', 'seat')}")
        ),
        seats=3,
    ),
    "opens_without_growing": Mistake(
        "opens: `dealt` has the round 1, expected 2", rules(("Dealt(number", "Dealt(1"))
    ),
    "opens_too_late": Mistake(
        "opens: seat 1 is asked `act` before round 1 was opened by `round_over`",
        vocabulary(("opens=(Dealt,)", "opens=(RoundOver,)")),
    ),
    "legal_empty": Mistake(
        "legal: `act` has no legal answer: `legal` is empty", rules((_ASKS, _ASKS[:-1] + ", ())"))
    ),
    "legal_refuses": Mistake(
        'legal: `act` refuses "fold", an element of its `legal`',
        vocabulary(
            (
                "    legal: tuple[Action, ...] = ACTIONS\n",
                "    legal: tuple[Action, ...] = ACTIONS\n\n"
                "    def check(self, value: object) -> Action:\n"
                '        if value == "fold":\n'
                "            raise self.refusal(value)\n"
                "        return super().check(value)\n",
            )
        ),
    ),
    "secrecy_of_a_hand": Mistake(
        r"secrecy: seat 1 is asked `act`, whose `other` shows a card of seat 2: \w\w",
        rules((_ASKS, _ASKS_WITH.format("cards[1 - seat]")), vocabulary=_SHOWS_OTHER),
    ),
    "secrecy_of_a_hand_without_holds": Mistake(
        r"secrecy: seats 1 and 2 are each shown \w\w, in `(card` and `other|other` and `card)`, before.*",
        rules((_ASKS, _ASKS_WITH.format("cards[1 - seat]")), _NO_HOLDS, vocabulary=_SHOWS_OTHER),
    ),
    "secrecy_of_the_stock": Mistake(
        r"secrecy: seat \d is asked `act`, whose `other` shows a card of the dealer or the stock: .*",
        rules((_ASKS, _ASKS_WITH.format("deck[SEATS]")), vocabulary=_SHOWS_OTHER),
    ),
    "secrecy_of_the_dealer": Mistake(
        r"secrecy: seat 1 is asked `act`, whose `other` shows a card of the dealer or the stock: .*",
        rules(
            ("Act(number, card)", "Act(number, card, dealer)"),
            vocabulary=(("    legal: tuple", "    other: Card\n    legal: tuple"),),
        ),
        seats=1,
    ),
    "secrecy_told_to_all": Mistake(
        r"secrecy: all seats are told `dealt`, whose `card` shows a card of seat 1, which has not "
        r"played it: \w\w",
        rules(("TellSeat(seat, Dealt", "TellSeat(EVERYONE, Dealt")),
    ),
    "secrecy_told_to_all_without_holds": Mistake(
        r"secrecy: all seats are told `dealt`, whose `card` shows a card of seat \d, which has not "
        r"played it: \w\w",
        rules(
            (
                "    actions: list",
                "    for card in cards:\n        yield TellSeat(EVERYONE, Dealt(number, starter, card))\n    actions: list",
            ),
            _NO_HOLDS,
        ),
    ),
    "secrecy_in_other_words": Mistake(
        r"secrecy: seat \d is asked another `act` if seat \d has another card, which only seat \d may know",
        rules(
            (
                _ASKS,
                _ASKS[:-1] + ", ACTIONS if CARDS.index(cards[1 - seat]) > 6 else ACTIONS[::-1])",
            ),
            ("    CARDS,", "    ACTIONS,\n    CARDS,"),
        ),
    ),
    "secrecy_in_other_words_without_holds": Mistake(
        r"secrecy: seat \d is asked another `act` if seat \d has another card, which only seat \d may know",
        rules(
            (
                _ASKS,
                _ASKS[:-1] + ", ACTIONS if CARDS.index(cards[1 - seat]) > 6 else ACTIONS[::-1])",
            ),
            ("    CARDS,", "    ACTIONS,\n    CARDS,"),
            _NO_HOLDS,
        ),
    ),
    "secrecy_unknown": Mistake(
        "secrecy: `holds` raised ZeroDivisionError.*", rules(("deck[seat : seat + 1]", "1 // 0"))
    ),
    "payoffs_of_something_else": Mistake(
        r"payoffs: up to round \d they add up to .*, the scores are .*",
        vocabulary(("news: news.payoffs", "news: news.scores")),
    ),
    "payoffs_of_too_few": Mistake(
        r"payoffs: of `round_over`: ValueError: expected 2 payoffs, got \(-?\d,\)",
        vocabulary(("news: news.payoffs", "news: news.payoffs[:1]")),
    ),
    "seats_too_many": Mistake(
        "seats: `act` is for seat 2, expected 0 to 1",
        rules(("AskSeat(seat, Act", "AskSeat(seat + 1, Act")),
    ),
    "deals_end": Mistake(
        "deals: ended after 3 deals, expected deals without end",
        rules(
            (
                "    while True:\n        yield stream",
                "    for _ in range(3):\n        yield stream",
            )
        ),
    ),
    "deals_raise": Mistake(
        "deals: raised ZeroDivisionError.*", rules(("stream.shuffled(CARDS)", "[1 // 0]"))
    ),
    "rules_draw_from_random": Mistake(
        "rules: the same cards and answers gave another match: .*",
        rules(
            ("(number - 1) % SEATS", "random.randrange(SEATS)"),
            ("from arena.", "import random\nfrom arena."),
        ),
    ),
    "rules_draw_from_time": Mistake(
        "rules: the same cards and answers gave another match: .*",
        rules(
            ("(number - 1) % SEATS", "time.time_ns() // 1000 % SEATS"),
            ("from arena.", "import time\nfrom arena."),
        ),
    ),
    "rules_keep_something": Mistake(
        "rules: the same cards and answers gave another match: .*",
        rules(
            ("(number - 1) % SEATS", "KEPT.append(1) or len(KEPT) // 5 % SEATS"),
            ("ANTE = BET = 1", "ANTE = BET = 1\nKEPT: list[int] = []"),
        ),
        seats=3,
    ),
    "rules_raise": Mistake(
        r"rules: a match with rounds=6 raised ZeroDivisionError: .*, after \d+ answers",
        rules(("    paid = payoffs", "    number // (number - 3)\n    paid = payoffs")),
    ),
    "rules_yield_something_else": Mistake(
        "rules: a match with rounds=6 yielded None, expected an AskSeat or a TellSeat",
        rules(("    paid = payoffs", "    yield None\n    paid = payoffs")),
    ),
    "rules_only_tell": Mistake(
        "rules: a match with rounds=6 told 10,001 news without a question, expected it to end",
        rules(
            (
                "    paid = payoffs",
                '    while True:\n        yield TellSeat(EVERYONE, Acted(0, "fold"))\n    paid = payoffs',
            )
        ),
    ),
    "rules_without_end": Mistake(
        "rules: a match with rounds=6 is not over after 20,000 decisions",
        rules(_ENDLESS, (_ROUNDS, "count(1)")),
    ),
    "private_cards_for_all": Mistake(
        "private: `acted` is told to all, expected one seat",
        vocabulary(("private=(Dealt,)", "private=(Dealt, Acted)")),
    ),
    "cards_of_one_seat_for_all": Mistake(
        "private: `dealt` is told to one seat, expected it in `private`, or a field `seat`",
        vocabulary(("private=(Dealt,)", "private=()")),
    ),
    "words_raise": Mistake(
        "words: of `acted`: IndexError: tuple index out of range",
        vocabulary(
            ('Told("{who} {action}s", repeats=True)', "Told(lambda news, names, who: [names[9]])")
        ),
    ),
    "words_of_an_answer_raise": Mistake(
        """words: of the answer "(stay|fold)" to `act`: KeyError: .*""",
        vocabulary(('"{answer}s")', "lambda question, answer: {}[answer])")),
    ),
    "words_are_none": Mistake(
        "words: of `acted`: TypeError: expected texts, got null",
        vocabulary(
            ('Told("{who} {action}s", repeats=True)', "Told(lambda news, names, who: [None])")
        ),
    ),
    "decisions_too_many": Mistake(
        r"decisions: matches with rounds=6 had \d+ to \d+ decisions, expected about 6,000",
        rules(("1.8 * settings.rounds", "1000.0 * settings.rounds")),
    ),
    "decisions_too_few": Mistake(
        r"decisions: matches with rounds=300 had \d+ to \d+ decisions, expected about 1",
        rules(
            ("1.8 * settings.rounds", "1.0"),
            ("    choices=(", '    short={"rounds": 300},\n    choices=('),
        ),
    ),
    "for_people_without_end": Mistake(
        "for_people: a match with rounds=20 is not over after 20,000 decisions, expected about 36 by `decisions`",
        rules(_ENDLESS, (_ROUNDS, f"(count(1) if settings.rounds == 20 else {_ROUNDS})")),
    ),
    "cross_without_end": Mistake(
        "cross: a match with rounds=100 is not over after 20,000 decisions, expected about 180 by `decisions`",
        rules(_ENDLESS, (_ROUNDS, f"(count(1) if settings.rounds == 100 else {_ROUNDS})")),
    ),
    "bots_answer_illegally": Mistake(
        """bots: bold ended a match with illegal: seat 1 answered "raise" to act; legal: stay, fold""",
        bots(
            (
                '"""Never folds."""\n',
                '"""Never folds."""\n\n'
                "    def decide(self, question: object) -> object:\n"
                '        return "raise"\n',
            )
        ),
    ),
    "bots_never_end": Mistake(
        "bots: .* the match is not over after 20,000 decisions.*",
        rules(
            (
                "        actions[seat] = action\n",
                "        actions[seat] = action\n"
                '        while action == "stay" and turn:\n'
                "            action = yield AskSeat(seat, Act(number, cards[seat], tuple(actions)))\n",
            )
        ),
    ),
    "bots_missing": Mistake(
        "bots: expected house bots of game_bots_missing in the group arena.bots, found none",
        bots(('["Bold", "Careful", "PlayerStrategy", "Random"]', '["PlayerStrategy"]')),
    ),
    "bots_without_random": Mistake(
        "bots: expected a house bot `random`, found bold, careful", bots((', "Random"]', "]"))
    ),
    "imports_in_the_vocabulary": Mistake(
        "imports: .*.vocabulary cannot be imported without `arena`: ImportError: it imports arena",
        vocabulary(("from protocol.cards", "import arena.engine.names\nfrom protocol.cards")),
    ),
    "imports_in_the_bots": Mistake(
        "imports: .*.bots cannot be imported without `arena`: ImportError: it imports arena",
        bots(("from protocol.cards", "import arena.engine.names\nfrom protocol.cards")),
    ),
    "wire_of_news": Mistake(
        "wire: `dealt`: Malformed: .*",
        vocabulary(("    starter: int\n    card: Card\n", "    starter: int\n    card: int\n")),
    ),
    "wire_of_a_question": Mistake(
        "wire: `act`: Malformed: .*",
        vocabulary(("    card: Card\n    actions", "    card: int\n    actions")),
    ),
}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    """By mistake, what is said of the game with it."""
    folder = tmp_path_factory.mktemp("broken")
    for name, mistake in MISTAKES.items():
        install_game(folder, f"game_{name}"[:40], mistake.seats, mistake.edits)
    done = subprocess.run(
        [sys.executable, "-c", _CHECKS, *(f"game_{name}"[:40] for name in MISTAKES)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    reports = {report["game"]: report for report in map(json.loads, done.stdout.splitlines())}
    found = {}
    for name in MISTAKES:
        report = reports.get(f"game_{name}"[:40])
        broken = [] if report is None else report["broken"]
        found[name] = [f"{each['convention']}: {each['text']}" for each in broken]
        assert report is not None, done.stderr
    return found


@pytest.mark.e2e
@pytest.mark.parametrize("name", MISTAKES)
def test_a_broken_convention_has_its_line(lines: Mapping[str, list[str]], name: str) -> None:
    says = re.compile(MISTAKES[name].says)

    assert any(says.fullmatch(line) for line in lines[name]), lines[name]


@pytest.mark.parametrize("game", GAMES.values(), ids=lambda game: str(game.name))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_there_is_no_alarm_for_our_games(game: Game, seed: int) -> None:
    report = check_game(game, matches=20, seed=seed)

    assert report.broken == ()
    assert report.package is None
    assert report.decisions > 0


def checked(folder: Path, *argv: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "arena", "check-game", *argv, "--seed", "1", "--json"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.e2e
@pytest.mark.parametrize("seats", [1, 2, 3, 6])
def test_there_is_no_alarm_for_a_toy(tmp_path: Path, seats: int) -> None:
    name = write_toy(tmp_path, seats)
    report = checked(tmp_path, name)

    assert report["broken"] == []
    assert report["package"] == f"{name} 1.0"
    assert report["decisions"] == 6 * seats  # six rounds, a bid of each


def test_a_match_that_is_checked_again_is_the_same() -> None:
    game = next(iter(GAMES.values()))

    assert check_game(game, matches=3, seed=5) == check_game(game, matches=3, seed=5)


def test_every_match_is_counted() -> None:
    counted = []
    check_game(next(iter(GAMES.values())), matches=4, seed=1, tick=lambda: counted.append(1))

    assert len(counted) == 4


def test_a_module_that_is_never_imported_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    game = next(iter(GAMES.values()))
    monkeypatch.setattr(game_check, "_IMPORT_S", 0)
    report = check_game(game, matches=1, seed=1)

    assert [str(broken) for broken in report.broken] == [
        f"imports: {module} is not imported after 0 seconds"
        for module in (f"protocol.{game.name}", f"bots.{game.name}")
    ]
