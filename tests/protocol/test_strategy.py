"""How strategies are found: house bots by name, anybody's in a file."""

from __future__ import annotations

import math
import os
import re
import statistics
import sys
from contextlib import suppress
from enum import Enum
from fractions import Fraction
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import arena
from bots.strategy import BaseStrategy
from protocol import strategy
from protocol.cards import Coded
from protocol.entry_points import LeftOut
from protocol.errors import UnknownBot
from protocol.games import VOCABULARIES
from protocol.strategy import as_sent, find, house_bots, load_file, load_others

BOT = """
class Bot:
    game = "ace_king_queen"
    def decide(self, question):
        return question.legal[0]
    def hear(self, news):
        pass
    def reset(self):
        pass
"""


MEDDLER = """
class Meta(type):
    def __getattr__(cls, name):
        raise GeneratorExit
class Bot(metaclass=Meta):
    pass
"""


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_game_without_house_bots_has_none() -> None:
    assert house_bots("ace_king") == {}


def test_a_module_of_house_bots_that_cannot_be_loaded_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left_out: list[LeftOut] = []
    broken = EntryPoint("ace_king_queen", "no_such_module", "arena.bots")
    monkeypatch.setattr("protocol.entry_points.points", lambda *_: [broken])
    monkeypatch.setattr("protocol.entry_points.LEFT_OUT", left_out)

    with pytest.raises(UnknownBot, match="none is installed"):
        find("ace_king_queen", "nash")
    assert "ModuleNotFoundError" in left_out[0].why


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x = 1\n", "expected `__all__` with the house bots in c_ape, found none"),
        ("__all__ = ['Ape']\n", "expected 'Ape' of `__all__` in c_ape, found none"),
        (
            "from bots.high_low import Bold\n__all__ = ['Bold']\n",
            "expected bots for ace_king_queen only in c_ape",
        ),
    ],
)
def test_a_module_without_house_bots_is_left_out_and_ours_stay(
    source: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out: list[LeftOut] = []
    write(tmp_path, source, "c_ape.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("protocol.entry_points.LEFT_OUT", left_out)
    ours = EntryPoint("ace_king_queen", "bots.ace_king_queen", "arena.bots")
    theirs = EntryPoint("ace_king_queen", "c_ape", "arena.bots")
    monkeypatch.setattr("protocol.entry_points.points", lambda *_: [ours, theirs])

    try:
        assert find("ace_king_queen", "nash")
    finally:
        sys.modules.pop("c_ape", None)
    assert [left.why for left in left_out] == [why]


def test_house_bots_of_a_game_that_is_not_here_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left_out: list[LeftOut] = []
    monkeypatch.setattr("protocol.entry_points.LEFT_OUT", left_out)
    given = [
        EntryPoint("ace_king_queen", "bots.ace_king_queen", "arena.bots"),
        EntryPoint("ace_king_queen", "zoo", "arena.bots"),
        EntryPoint("ape", "zoo", "arena.bots"),
    ]
    monkeypatch.setattr("protocol.strategy.points", lambda *_: given)
    monkeypatch.setattr("protocol.strategy.house_bots", lambda game: {})

    load_others()
    assert [str(left) for left in left_out] == [
        "ape of zoo ? is left out (arena.bots): there is no game of that name here"
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (BOT, "Bot"),
        ("from bots.ace_king_queen import Nash\nclass Mine(Nash): pass", "Mine"),
        (BOT + "class Better(Bot): pass\nclass Best(Better): pass", "Best"),
        (BOT + "Player = Bot", "Bot"),
        (BOT + "class Memory: game = 'ace_king_queen'", "Bot"),
        (f"from dataclasses import dataclass\n@dataclass\n{BOT.lstrip()}", "Bot"),
    ],
)
def test_the_bot_of_a_file_is_its_last_class_with_the_interface(
    tmp_path: Path, text: str, name: str
) -> None:
    cls = find("ace_king_queen", str(write(tmp_path, text)))

    assert cls.__name__ == name
    assert cls().decide is not None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1", r"found none$"),
        *[(BOT.replace('"ace_king_queen"', game), r"found none$") for game in ("None", "5", "[]")],
        (BOT.replace('"ace_king_queen"', "property(len)"), r"found none$"),
        (BOT + BOT.replace("Bot", "Another"), r"found Another, Bot$"),
    ],
)
def test_a_file_without_one_bot_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UnknownBot, match=why):
        load_file(write(tmp_path, text))


@pytest.mark.parametrize(
    ("game", "name", "why"),
    [
        ("ace_king_queen", "hero", r"no house bot 'hero' .* bluffer, honest"),
        ("poker", "nash", "none is installed"),
        ("gin_rummy", "{}/mine.py", "plays ace_king_queen, expected a bot for gin"),
        ("ace_king_queen", "{}/nobody.py", "found no file"),
        ("ace_king_queen", "{}/folder.py", "found no file"),
    ],
)
def test_what_is_no_bot_for_a_game_is_refused(
    tmp_path: Path, game: str, name: str, why: str
) -> None:
    write(tmp_path, BOT)
    (tmp_path / "folder.py").mkdir()

    with pytest.raises(UnknownBot, match=why):
        find(game, name.format(tmp_path))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def", "SyntaxError: "),
        ("import no_such_module", "ModuleNotFoundError: "),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("exit(3)", "SystemExit: 3"),
        ("import sys; sys.exit()", "SystemExit"),
        ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
        ("raise BaseException('x')", "BaseException: x"),
        (MEDDLER, "GeneratorExit"),
        ("raise ValueError('a\\nb')", "ValueError: a\N{REPLACEMENT CHARACTER}b"),
        ("\0", ""),
    ],
)
def test_a_file_that_cannot_be_run_is_refused_on_one_line(
    tmp_path: Path, text: str, error: str
) -> None:
    with pytest.raises(UnknownBot) as refused:
        load_file(write(tmp_path, text))

    assert f"cannot be run: {error}" in str(refused.value)
    assert str(refused.value).isprintable()


def test_ctrl_c_still_ends_us(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        load_file(write(tmp_path, "raise KeyboardInterrupt"))


IMPORTS = {
    "a module": "import helper\nWHO = helper.WHO",
    "a name": "from helper import WHO",
    "a package": "import tools.deep.far as far\nWHO = far.WHO",
    "a name of a package": "from tools.deep import far\nWHO = far.WHO",
    "the top of a package": "import tools.deep.far\nWHO = tools.deep.far.WHO",
    "beside it, relatively": "from . import helper\nWHO = helper.WHO",
    "a name, relatively": "from .helper import WHO",
    "a helper of a helper": "from second import WHO",
    "a module like one of the standard library": "from statistics import WHO",
    "a folder without an __init__.py": "from plain.inner import WHO",
}


@pytest.mark.parametrize("imports", IMPORTS.values(), ids=IMPORTS)
@pytest.mark.parametrize("is_late", [False, True])
def test_every_bot_has_the_modules_of_its_own_folder(
    tmp_path: Path, imports: str, is_late: bool
) -> None:
    bots = []
    for who in ("ann", "ben"):
        for module in ("helper", "tools/deep/far", "statistics", "plain/inner"):
            write(tmp_path / who, f"WHO = {who!r}", f"{module}.py")
        write(tmp_path / who, "from helper import WHO", "second.py")
        for package in ("tools", "tools/deep"):
            write(tmp_path / who, "", f"{package}/__init__.py")
        indented = imports.replace("\n", "\n        ")
        late = f"\n    def who(self):\n        {indented}\n        return WHO\n"
        early = "\n    def who(self):\n        return WHO\n"
        text = BOT + late if is_late else f"{imports}\n{BOT}{early}"
        bots.append(load_file(write(tmp_path / who, text)))

    assert [bot().who() for bot in bots] == ["ann", "ben"]


def test_what_a_bot_imports_stays_its_own_and_ours_stays_ours(tmp_path: Path) -> None:
    for module in ("statistics", "bots", "protocol/__init__", "json/data"):
        write(
            tmp_path,
            "raise RuntimeError('not this one')" * (module != "statistics"),
            f"{module}.py",
        )
    load_file(write(tmp_path, f"import statistics, json, protocol.cards\njson.dumps\n{BOT}"))

    assert statistics.mean([1, 2]) == 1.5
    assert str(tmp_path) not in sys.path


def test_a_bot_called_like_a_module_of_the_library_does_not_mean_itself(tmp_path: Path) -> None:
    text = f"import statistics\n{BOT}\nBot.__doc__ = str(statistics.mean([1, 3]))\n"

    assert load_file(write(tmp_path, text, "statistics.py")).__doc__ == "2"


def test_a_plain_folder_does_not_stand_for_one_elsewhere_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
    write(tmp_path / "elsewhere", "", "plain_lib/other.py")
    write(tmp_path / "ann", "WHO = 'ann'", "plain_lib/x.py")
    path = write(tmp_path / "ann", f"from plain_lib.x import WHO\n{BOT}\nBot.__doc__ = WHO\n")

    assert load_file(path).__doc__ == "ann"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import helper.nothing", "No module named 'helper.nothing'; 'helper' is not a package"),
        ("from helper import nothing", "cannot import name 'nothing' from 'helper'"),
    ],
)
def test_modules_are_called_in_errors_as_their_author_calls_them(
    tmp_path: Path, text: str, why: str
) -> None:
    write(tmp_path, "", "helper.py")

    with pytest.raises(UnknownBot, match=re.escape(why)):
        load_file(write(tmp_path, text))


def test_a_module_that_is_not_there_is_missed_where_it_is_imported(tmp_path: Path) -> None:
    lines = BOT.replace("        return question.legal[0]", "        import no_such_module")
    bot = load_file(write(tmp_path, lines))
    result = arena.play("ace_king_queen", [bot(), bot()], seed=1)

    assert result.termination.text.endswith("mine.py:5")
    assert "ModuleNotFoundError: No module named 'no_such_module'" in result.termination.text


def test_a_helper_that_was_changed_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, "from helper import WHO\n" + BOT + "\nBot.__doc__ = WHO\n")
    docs = []
    for who in ("ann", "ben"):
        write(tmp_path, f"WHO = {who!r}", "helper.py")
        docs.append(load_file(path).__doc__)

    assert docs == ["ann", "ben"]


def test_a_file_that_was_changed_within_a_second_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, BOT + "\nBot.__doc__ = 'one'\n")
    once = path.stat()
    docs = [load_file(path).__doc__]
    write(tmp_path, BOT + "\nBot.__doc__ = 'two'\n")
    os.utime(path, ns=(once.st_atime_ns, once.st_mtime_ns))
    docs.append(load_file(path).__doc__)

    assert docs == ["one", "two"]


@pytest.mark.parametrize(
    "text",
    [BOT, "1 / 0", "import sys; sys.path.insert(0, 'elsewhere')", "import sys; sys.path.pop(0)"],
)
def test_loading_leaves_the_search_path_to_others(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", before := list(sys.path))
    with suppress(UnknownBot):
        load_file(write(tmp_path, text))

    assert str(tmp_path) not in before


# ---- Methods that look like those of the interface


def defines(folder: Path, game: str, *methods: str, more: str = "") -> type[object]:
    """Load a bot that has these public methods of its own."""
    lines = "".join(f"    def {name}(self, *told):\n        pass\n" for name in methods)
    text = f"from bots.{game} import *\n{more}\nclass Mine(PlayerStrategy):\n{lines}"
    return load_file(write(folder, text))


@pytest.mark.parametrize(
    ("game", "own", "default"),
    [
        ("high_low", "make_bid", "bid"),
        ("high_low", "makeBid", "bid"),
        ("high_low", "MAKE_BID", "bid"),
        ("high_low", "makebid", "bid"),
        ("high_low", "chooseMyBid", "bid"),
        ("high_low", "bids", "bid"),
        ("high_low", "on_round_over", "round_over"),
        ("high_low", "hear_bid_made", "bid_made"),
        ("high_low", "sawp", "swap"),
        ("three_card_poker", "round", "round_over"),  # as bots/README.md says
        ("three_card_poker", "get_ante", "ante"),
        ("three_card_poker", "is_playing", "play"),
        ("blackjack", "do_draw", "draw"),
        ("gin_rummy", "melds", "get_melds"),
        ("gin_rummy", "knack", "knock"),
        ("gin_rummy", "recieve_initial_hand", "receive_initial_hand"),
        ("gin_rummy", "will_take_top_discrad", "will_take_top_discard"),
        ("gin_rummy", "end_turn_feedback", "opponent_end_turn_feedback"),
    ],
)
def test_a_method_that_looks_like_one_left_to_the_default_is_refused_with_both_names(
    tmp_path: Path, game: str, own: str, default: str
) -> None:
    with pytest.raises(UnknownBot, match=f"`{default}`.* `{own}`.*`_{own}`"):
        defines(tmp_path, game, own)


@pytest.mark.parametrize(
    ("game", "methods"),
    [
        ("high_low", ["_make_bid"]),
        ("high_low", ["bid", "make_bid", "bid_table", "best_bid"]),
        ("high_low", ["hear_bid", "reset_counts", "decide_early"]),
        ("high_low", ["forbidden_cards", "alphabet"]),
        ("ace_king_queen", ["recall", "alphabet", "best", "calm"]),
        ("three_card_poker", ["display", "pay", "guarantee", "rays"]),
        ("three_card_poker", ["play", "is_playing"]),
        ("gin_rummy", ["best_discard", "discard", "card", "hand_value"]),
        ("gin_rummy", ["take_turn", "best_turn"]),
        # with its own `decide` or `hear`
        ("high_low", ["decide", "make_bid"]),
        ("high_low", ["hear", "on_dealt"]),
    ],
)
def test_helpers_may_be_called_what_their_author_likes(
    tmp_path: Path, game: str, methods: list[str]
) -> None:
    assert defines(tmp_path, game, *methods).__name__ == "Mine"


@pytest.mark.parametrize("made", ["@property", "@staticmethod", "@classmethod", "@functools.cache"])
def test_what_is_no_plain_method_replaces_none(tmp_path: Path, made: str) -> None:
    text = (
        "import functools\nfrom bots.high_low import PlayerStrategy\n"
        f"class Mine(PlayerStrategy):\n    {made}\n    def make_bid(self):\n        pass\n"
    )

    assert load_file(write(tmp_path, text)).__name__ == "Mine"


def test_own_hear_does_not_excuse_a_misspelled_answer(tmp_path: Path) -> None:
    with pytest.raises(UnknownBot, match=r"`bid`.* `make_bid`"):
        defines(tmp_path, "high_low", "hear", "make_bid")


@pytest.mark.parametrize("bases", ["Mixin, PlayerStrategy", "Timid"])
def test_what_is_inherited_from_a_mixin_or_a_house_bot_is_no_misspelling(
    tmp_path: Path, bases: str
) -> None:
    own = "swap" if "Mixin" in bases else "bid_lowest"
    mixin = "class Mixin:\n    def make_bid(self): pass\n"
    mine = f"class Mine({bases}):\n    def {own}(self, *told): pass\n"
    text = f"from bots.high_low import *\n{mixin}{mine}"

    assert load_file(write(tmp_path, text)).__name__ == "Mine"


def test_a_common_base_in_the_file_is_looked_at_with_the_bot(tmp_path: Path) -> None:
    base = "class Base(PlayerStrategy):\n    def make_bid(self): pass\n"
    text = f"from bots.high_low import PlayerStrategy\n{base}class Mine(Base):\n    pass\n"

    with pytest.raises(UnknownBot, match=r"Mine has no method `bid`.*`make_bid`"):
        load_file(write(tmp_path, text))
    bid = text.replace("    pass\n", "    def bid(self, *told): pass\n")
    assert load_file(write(tmp_path, bid)).__name__ == "Mine"


@pytest.mark.parametrize("game", VOCABULARIES)
def test_no_house_bot_misspells_a_method(game: str) -> None:
    for name in house_bots(game, slow=True):
        assert list(strategy._misspelled(find(game, name))) == []
        assert list(strategy._misfits(find(game, name))) == []


# ---- Methods with other parameters than those of the interface

FEEDBACK = "(self, mine, other, opened, response, bettor)"


@pytest.mark.parametrize(
    ("method", "own", "expected"),
    [
        ("bet", "(self)", "(self, card)"),
        ("bet", "(card)", "(self, card)"),
        ("bet", "(self, card, other)", "(self, card)"),
        ("bet", "(self, card, *, other)", "(self, card)"),
        ("feedback", "(self, mine, other)", FEEDBACK),
        ("hear", "(self)", "(self, news)"),
        ("decide", "(self, question, more)", "(self, question)"),
        ("reset", "(self, news)", "(self)"),
        ("bet", "(self, card, other=1)", None),
        ("bet", "(self, *cards)", None),
        ("bet", "(self, card, *, other=1)", None),
        ("feedback", "(self, mine, *more)", None),
    ],
)
@pytest.mark.parametrize("base", ["PlayerStrategy", "Honest", "object"])
def test_a_method_with_other_parameters_is_blamed_with_its_line(
    tmp_path: Path, base: str, method: str, own: str, expected: str | None
) -> None:
    plumbing = "decide(self, question)", "hear(self, news)", "reset(self)"
    mine = [head for head in plumbing if base == "object" and not head.startswith(method)]
    heads = "".join(f"    def {head}: pass\n" for head in (f"{method}{own}", *mine))
    text = f"from bots.ace_king_queen import *\nclass Mine({base}):\n    game = 'x'\n{heads}"
    if expected is None or (base == "object" and not any(h.startswith(method) for h in plumbing)):
        assert load_file(write(tmp_path, text)).__name__ == "Mine"
        return
    with pytest.raises(UnknownBot) as raised:
        load_file(write(tmp_path, text))
    got = own.replace("*, ", "")
    assert str(raised.value) == (
        f"expected `def {method}{expected}` in mine.py, line 4, got `def {method}{got}`"
    )


@pytest.mark.parametrize(
    ("method", "caller"),
    [("bet(self)", "decide(self, question)"), ("feedback(self)", "hear(self, news)")],
)
def test_a_bot_with_its_own_decide_or_hear_has_its_own_parameters(
    tmp_path: Path, method: str, caller: str
) -> None:
    heads = f"    def {method}: pass\n    def {caller}: pass\n"
    text = f"from bots.ace_king_queen import *\nclass Mine(PlayerStrategy):\n{heads}"

    assert load_file(write(tmp_path, text)).__name__ == "Mine"


def test_a_slow_house_bot_plays_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    bold = house_bots("high_low")["bold"]
    monkeypatch.setattr(bold, "is_slow", True, raising=False)

    assert "bold" not in house_bots("high_low")
    assert house_bots("high_low", slow=True)["bold"] is find("high_low", "bold") is bold


def test_a_house_bot_of_others_stands_behind_ours_and_gets_no_name_that_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Aaa(BaseStrategy):
        game = "high_low"

    bold = type("Bold", (Aaa,), {})
    module = ModuleType("other_bots")
    vars(module).update(Aaa=Aaa, Bold=bold, __all__=["Aaa", "Bold"])
    monkeypatch.setitem(sys.modules, "other_bots", module)
    theirs = EntryPoint("high_low", "other_bots", "arena.bots")
    ours = EntryPoint("high_low", "bots.high_low", "arena.bots")
    left_out: list[LeftOut] = []
    monkeypatch.setattr("protocol.entry_points.points", lambda *_: [ours, theirs])
    monkeypatch.setattr("protocol.entry_points.LEFT_OUT", left_out)

    assert [*house_bots("high_low")] == ["bold", "counter", "random", "timid", "aaa"]
    assert house_bots("high_low")["bold"] is not bold
    assert [(left.name, left.why) for left in left_out] == [
        ("high_low.bold", "the name is taken by bots.high_low")
    ]


def test_a_module_that_is_left_out_is_not_run_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "breaks_slowly.py").write_text("import sys; sys.runs += 1; raise ValueError")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "runs", 0, raising=False)
    broken = EntryPoint("high_low", "breaks_slowly", "arena.bots")
    monkeypatch.setattr("protocol.entry_points.points", lambda *_: [broken])
    monkeypatch.setattr("protocol.entry_points.LEFT_OUT", [])
    for _ in range(3):
        house_bots("high_low")

    assert vars(sys)["runs"] == 1


class CodedAce(Coded):
    code = "As"


class OwnText(str):
    """A text of a class of its own."""


class AnswerMember(Enum):
    NUMBER = np.int64(5)
    CARD = CodedAce()


class IndexOnly:
    def __index__(self) -> int:
        return 5


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        *((5, 5), (np.int64(5), 5), (IndexOnly(), 5), (Fraction(5), 5.0), ([OwnText("5")], ["5"])),
        *((math.inf, "<Infinity>"), (np.float64("nan"), "<NaN>"), (np.float32("nan"), "<NaN>")),
        *(({"a": [math.nan, 1.5]}, {"a": ["<NaN>", 1.5]}), (-math.inf, "<-Infinity>")),
        *(([CodedAce()], ["As"]), (range(5), "<range(0, 5)>"), ({(5,): 5}, "<{(5,): 5}>")),
        *((AnswerMember.NUMBER, 5), ([AnswerMember.CARD], ["As"])),
    ],
)
def test_J1_an_answer_has_the_types_that_are_sent(given: object, sent: object) -> None:
    assert (as_sent(given), type(as_sent(given))) == (sent, type(sent))
