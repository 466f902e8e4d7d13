"""What `arena new` writes: a bot for one game in one language, with a test and the commands for it.

A starter is the plumbing of that language's example, as it is, and the templates of `bots/starters/<language>/`, filled with what the
game's vocabulary has: its kinds of questions and news, their fields, what can be answered. So it says nothing that the rules do not.
Nothing is written here, and no bot is imported: both folders are data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from importlib.resources import files

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from arena.authoring.field_docs import kind_docs
from arena.authoring.samples import samples
from arena.authoring.strategy_source import interface
from arena.competitions.config import ServeSection
from arena.engine.rules import Game
from protocol.codec import Encoding, encode
from protocol.strategy import house_bots

__all__ = ["ADDRESS", "Language", "ShellCommand", "Starter", "plain_name", "starter"]


class Language(StrEnum):
    """What a starter can be written in; also the names of the folders."""

    PYTHON = "python"
    JAVASCRIPT = "javascript"
    JAVA = "java"
    CPP = "cpp"
    GO = "go"
    BASH = "bash"

    @property
    def shown(self) -> str:
        """What people call it."""
        return _TOOLS[self].title


class ShellCommand(msgspec.Struct, frozen=True):
    """Something to do in a starter's folder: what for, in a word, and the line for a shell."""

    purpose: str
    line: str


class Starter(msgspec.Struct, frozen=True):
    """A bot to begin with.

    Attributes:
        files: their texts by name.
        commands: in the order in which they are used: perhaps `build`, then `test`, `try`, `check` and `connect`.
    """

    files: Mapping[str, str]
    commands: tuple[ShellCommand, ...]


class _Tools(msgspec.Struct, frozen=True, kw_only=True):
    """How bots in a language are used.

    Attributes:
        title: what people call the language.
        plumbing: the files of the example that are taken as they are.
        edit: the file with what the bot answers.
        needs: what has to be there, as Debian calls it.
        build: the command that builds it, or none.
        test: the command that runs its test.
        start: the command that starts it, as `--bot` takes it.
    """

    title: str
    plumbing: tuple[str, ...] = ()
    edit: str
    needs: str = ""
    build: str = ""
    test: str
    start: str


# A JVM's heap is a quarter of the machine's memory if it is not told, and the arena allows 512 MiB.
_JAVA = "java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -jar bot.jar"

_TOOLS = {
    Language.PYTHON: _Tools(
        title="Python", edit="bot.py", test="python -m unittest", start="bot.py"
    ),
    Language.JAVASCRIPT: _Tools(
        title="JavaScript",
        plumbing=("session.js",),
        edit="bot.js",
        needs="nodejs and npm",
        build="npm install --no-package-lock",
        test="node --test",
        start="node main.js",
    ),
    Language.JAVA: _Tools(
        title="Java",
        plumbing=("Session.java", "Makefile"),
        edit="Bot.java",
        needs="default-jdk-headless, libgoogle-gson-java and make",
        build="make",
        test="make test",
        start=_JAVA,
    ),
    Language.CPP: _Tools(
        title="C++",
        plumbing=("session.cpp", "session.hpp", "main.cpp", "bot.hpp", "Makefile"),
        edit="bot.cpp",
        needs="g++, libboost-dev, nlohmann-json3-dev and make",
        build="make",
        test="make test",
        start="./bot",
    ),
    Language.GO: _Tools(
        title="Go",
        plumbing=("session.go", "Makefile"),
        edit="bot.go",
        needs="golang-go, golang-github-gorilla-websocket-dev and make",
        build="make",
        test="make test",
        start="./bot",
    ),
    Language.BASH: _Tools(
        title="Bash",
        plumbing=("session.sh", "session.jq"),
        edit="bot.sh",
        needs="jq",
        test="bash test.sh",
        start="stdio: bash bot.sh",
    ),
}

ADDRESS = f"ws://127.0.0.1:{ServeSection().port}"  # an arena on the same machine
SAMPLES = "samples.jsonl"
_COMMON = "common"  # the templates that all languages have
_SUFFIX = "jinja"  # of the names of templates, as most are no programs yet
_TEMPLATES = Environment(
    loader=PackageLoader("bots", "starters"),
    autoescape=False,  # programs, no HTML
    keep_trailing_newline=True,
    lstrip_blocks=True,
    trim_blocks=True,
    undefined=StrictUndefined,
)
_TRAILING_SPACE = re.compile(r"[ \t]+$", re.MULTILINE)  # of a comment's empty line
_LINES = "stdio:"  # before the command of a bot that reads and writes lines
_LONGEST_NAME = 24


def starter(game: Game, language: Language, name: str) -> Starter:
    """A bot for a game.

    Args:
        game: what it plays.
        language: what it is written in.
        name: what it is called, see `plain_name`.
    """
    tools = _TOOLS[language]
    commands = _commands(game, language, name)
    values = {"name": name, **_values(game, language, commands)}
    examples = files("bots") / "examples" / language
    written = {file: (examples / file).read_text(encoding="utf-8") for file in tools.plumbing}
    for path in _TEMPLATES.list_templates(extensions=[_SUFFIX]):
        folder, _, file = path.removesuffix(f".{_SUFFIX}").partition("/")
        if folder in (_COMMON, language):
            text = _TEMPLATES.get_template(path).render(values)
            written[file] = _TRAILING_SPACE.sub("", text)
    written[SAMPLES] = "".join(
        encode(message, Encoding.JSON).decode() + "\n" for message in samples(game)
    )
    return Starter(dict(sorted(written.items())), commands)


def plain_name(name: str) -> str:
    """A name, without what neither `--bot` nor a shell takes as it is: `my bot` becomes `my-bot`."""
    plain = re.sub(r"[^\w-]+", "-", name, flags=re.ASCII)[:_LONGEST_NAME]
    return plain.strip("-") or "bot"


def _commands(game: Game, language: Language, name: str) -> tuple[ShellCommand, ...]:
    """What can be done with it, line by line."""
    tools = _TOOLS[language]
    rivals = list(house_bots(game.name))[: game.seats - 1]
    play = ["arena", "play", game.name]
    if language is Language.PYTHON:
        play += ["bot.py", *rivals]
        connect = f"arena connect bot.py --name {name} --url {ADDRESS}"
    else:
        play += [*rivals, "--bot", f"'{name}={tools.start}'"]
        connect = f"ARENA_NAME={name} ARENA_URL={ADDRESS} {tools.start}"
    if tools.start.startswith(_LINES):  # it has no WebSocket: our client has
        connect = f"arena connect {_quoted(tools.start)} --name {name} --url {ADDRESS}"
    lines = {
        "build": tools.build,
        "test": tools.test,
        "try": " ".join(play),
        "check": f"arena check -- {_quoted(tools.start)}",
        "connect": connect,
    }
    return tuple(ShellCommand(purpose, line) for purpose, line in lines.items() if line)


def _quoted(command: str) -> str:
    """A command that has a prefix of ours, as one word for a shell."""
    return f"'{command}'" if command.startswith(_LINES) else command


def _values(
    game: Game, language: Language, commands: tuple[ShellCommand, ...]
) -> Mapping[str, object]:
    """What the templates are filled with; for a purpose that no command has, an empty text."""
    words, tools = game.vocabulary, _TOOLS[language]
    lines = dict.fromkeys(("build", "test", "try", "check", "connect"), "")
    python = interface(game.name)
    return {
        **lines,
        **{command.purpose: command.line for command in commands},
        "title": words.title,
        "game": game.name,
        "seats": game.seats,
        "house": next(iter(house_bots(game.name))) if game.seats > 1 else "",
        "language": tools.title,
        "needs": tools.needs,
        "edit": tools.edit,
        "plumbing": tools.plumbing[0] if tools.plumbing else "",
        "websocket": not tools.start.startswith(_LINES),
        "declares": "melds" in words.questions,  # which `legal` does not list
        "imports": python.imports,
        "methods": python.methods,
        "questions": [kind_docs(kind, cls) for kind, cls in words.questions.items()],
        "news": [kind_docs(kind, cls) for kind, cls in words.news.items()],
    }
