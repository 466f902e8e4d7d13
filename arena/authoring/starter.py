"""Makes what `arena new` writes: a bot for one game in one language, a test, and commands.

A starter consists of the session files of that language's example, unchanged, and of the templates
in `bots/starters/<language>/`. They are filled in from the game's vocabulary: its kinds of
questions and news, their fields, and the legal answers. A library that does not come with the
language is copied from `bots/vendor/`. All three folders are read as data: no bot is imported.

For a language without a starter, `arena new --lang other` writes sections of the manual.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import cycle, islice

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from arena.authoring.field_docs import kind_docs
from arena.authoring.samples import samples
from arena.authoring.strategy_source import interface
from arena.competitions.config import ServeSection
from arena.games.rules import Game
from arena.sandbox.languages import LANGUAGES, LIBRARIES, Language
from protocol.codec import Encoding, encode
from protocol.strategy import house_bots

__all__ = [
    "ADDRESS",
    "ShellCommand",
    "Starter",
    "other_language",
    "plain_name",
    "rivals",
    "starter",
    "templates",
    "with_bot",
]


class ShellCommand(msgspec.Struct, frozen=True):
    """A shell command for a starter's folder, and its purpose in one word."""

    purpose: str
    line: str


class Starter(msgspec.Struct, frozen=True):
    """A new bot: the texts of its files by name, and commands in the order of use."""

    files: Mapping[str, str]
    commands: tuple[ShellCommand, ...]


ADDRESS = f"ws://127.0.0.1:{ServeSection().port}"  # an arena on the same machine
SAMPLES = "samples.jsonl"
_COMMON = "common"  # the folder of templates for all languages
_SUFFIX = "jinja"
_TRAILING_SPACE = re.compile(r"[ \t]+$", re.MULTILINE)  # in a comment's empty line
_LINES = "stdio:"  # comes before the command of a bot that speaks in lines
_LONGEST_NAME = 24
_COMMAND = "COMMAND"  # only the author knows what starts the bot


def templates(package: str, folder: str) -> Environment:
    """Load the templates of programs in a folder of a package."""
    return Environment(
        loader=PackageLoader(package, folder),
        autoescape=False,  # programs, not HTML
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )


_TEMPLATES = templates("bots", "starters")


def starter(game: Game, language: Language, name: str) -> Starter:
    """Make a bot for a game in a language; `plain_name` gives a good name."""
    tools = LANGUAGES[language]
    commands = _commands(game, language, name)
    values = {"name": name, **_values(game, language, commands)}
    examples = files("bots") / "examples" / language
    written = {file: (examples / file).read_text(encoding="utf-8") for file in tools.plumbing}
    for library in tools.libraries:
        written |= _below(files("bots") / "vendor" / library, f"{LIBRARIES}/{library}")
    for path in _TEMPLATES.list_templates(extensions=[_SUFFIX]):
        folder, _, file = path.removesuffix(f".{_SUFFIX}").partition("/")
        if folder in (_COMMON, language):
            written[file] = _TRAILING_SPACE.sub("", _TEMPLATES.get_template(path).render(values))
    written[SAMPLES] = "".join(
        encode(message, Encoding.JSON).decode() + "\n" for message in samples(game)
    )
    return Starter(dict(sorted(written.items())), commands)


def _below(folder: Traversable, name: str) -> Iterator[tuple[str, str]]:
    """Yield the name in the starter and the text of each file in a folder and below."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{name}/{entry.name}")
        else:
            yield f"{name}/{entry.name}", entry.read_text(encoding="utf-8")


def plain_name(name: str) -> str:
    """Make a name that `--bot` and a shell accept without quotes: `my bot` becomes `my-bot`."""
    plain = re.sub(r"[^\w-]+", "-", name, flags=re.ASCII)[:_LONGEST_NAME]
    return plain.strip("-") or "bot"


def _commands(game: Game, language: Language, name: str) -> tuple[ShellCommand, ...]:
    tools = LANGUAGES[language]
    play = ["arena", "play", game.name]
    if language is Language.PYTHON:
        play += ["bot.py", *(rivals(game) or ["bot.py"] * (game.seats - 1))]
        connect = f"arena connect bot.py --name {name} --url {ADDRESS}"
    else:
        play += with_bot(game, name, tools.start)
        connect = f"ARENA_NAME={name} ARENA_URL={ADDRESS} {tools.start}"
    if tools.start.startswith(_LINES):  # without a WebSocket, our client carries the bot's lines
        connect = f"arena connect {_quoted(tools.start)} --name {name} --url {ADDRESS}"
    lines = {
        "build": tools.build,
        "test": tools.test,
        "try": " ".join(play),
        "check": f"arena check -- {_quoted(tools.start)}",
        "connect": connect,
        "submit": f"arena submit . --url {ADDRESS}",
    }
    return tuple(ShellCommand(purpose, line) for purpose, line in lines.items() if line)


def rivals(game: Game) -> list[str]:
    """Return house bots for the other seats, with repetitions; empty if the game has none."""
    return [*islice(cycle(house_bots(game.name)), game.seats - 1)]


def with_bot(game: Game, name: str, command: str) -> list[str]:
    """Return the bots for `arena play`: a command's bot with house bots, or else with copies."""
    house = rivals(game)
    copies = [name] if house else [name, *(f"{name}-{n}" for n in range(2, game.seats + 1))]
    return [*house, *(f"--bot '{copy}={command}'" for copy in copies)]


def _quoted(command: str) -> str:
    """Quote a command with our `stdio:` as one word for a shell; others stay as they are."""
    return f"'{command}'" if command.startswith(_LINES) else command


def _values(
    game: Game, language: Language, commands: tuple[ShellCommand, ...]
) -> Mapping[str, object]:
    words, tools = game.vocabulary, LANGUAGES[language]
    python = interface(game.name)
    return {
        "build": "",
        **{command.purpose: command.line for command in commands},
        "title": words.title,
        "game": game.name,
        "seats": game.seats,
        "house": next(iter(rivals(game)), ""),
        "language": tools.title,
        "needs": [need.package for need in tools.needs],
        "edit": tools.edit,
        "plumbing": tools.plumbing[0] if tools.plumbing else "",
        "websocket": not tools.start.startswith(_LINES),
        "declares": "melds" in words.questions,  # `legal` does not list declared melds
        "base": python.base,
        "imports": python.imports,
        "methods": python.methods,
        "questions": [kind_docs(kind, cls) for kind, cls in words.questions.items()],
        "news": [kind_docs(kind, cls) for kind, cls in words.news.items()],
    }


# ---- A language without a starter


def other_language(game: Game, name: str, section: Callable[[str], str]) -> Starter:
    """Collect the game's page, the session in pseudocode and in lines, and commands for the bot.

    A game from another package has no page in our manual: its page is made from its description.

    Args:
        game: the game that the bot plays.
        name: the bot's name.
        section: returns a section of the protocol's manual by its heading.
    """
    play = " ".join(["arena play", game.name, *with_bot(game, name, _COMMAND)])
    page = section(game.name) if game.package is None else _page(game)
    return Starter(
        {
            f"{game.name}.md": page,
            "lines.md": section("Lines instead of a WebSocket"),
            "session.md": section("The session in pseudocode"),
        },
        (
            ShellCommand("try", play),
            ShellCommand("check", f"arena check -- {_COMMAND}"),
            ShellCommand("connect", f"ARENA_NAME={name} ARENA_URL={ADDRESS} {_COMMAND}"),
            ShellCommand("in lines", f"arena connect 'stdio: {_COMMAND}' --name {name}"),
        ),
    )


def _page(game: Game) -> str:
    """Write the rules in brief, and every question and news with its fields."""
    words = game.vocabulary
    lines = [f"# {words.title}", "", game.summary, "", f"Seats: {words.seats}."]
    for title, kinds in ("Questions", words.questions), ("News", words.news):
        lines += ["", f"## {title}"]
        for kind, cls in kinds.items():
            lines += ["", f"### `{kind}`", "", "```text", *kind_docs(kind, cls).notes, "```"]
    return "\n".join(lines) + "\n"
