"""The languages of the starters: their files, their commands, and what they need; in one place.

`arena new` writes the starters, `manifest` recognizes them when they are handed in, and
`toolchains` tests for what they need.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

__all__ = ["LANGUAGES", "LIBRARIES", "Language", "LanguageNeed", "LanguageTools"]

LIBRARIES = "node_modules"
"""The folder in a program where Node looks for the libraries that it imports."""


class Language(StrEnum):
    """The languages of starters. The values are also the names of folders."""

    PYTHON = "python"
    JAVASCRIPT = "javascript"
    JAVA = "java"
    CPP = "cpp"
    GO = "go"
    BASH = "bash"

    @property
    def shown(self) -> str:
        return LANGUAGES[self].title


class LanguageNeed(msgspec.Struct, frozen=True, kw_only=True):
    """Something that must be installed.

    Attributes:
        package: its name in Debian.
        name: its name for display.
        probe: a command that succeeds where it is installed, and may print its version.
        source: the input of that command.
        environment: variables that the command needs.
        oldest: the oldest version that will do.
    """

    package: str
    name: str
    probe: tuple[str, ...]
    source: str = ""
    environment: dict[str, str] = {}
    oldest: tuple[int, ...] = ()


class LanguageTools(msgspec.Struct, frozen=True, kw_only=True):
    """The files and commands of bots in one language.

    Attributes:
        marks: the files by which a starter's folder is recognized.
        plumbing: the files that are copied from the example; the first one has the session.
        edit: the file with the bot's answers.
        libraries: the third-party files for the program's `LIBRARIES`; `bots/vendor` has them.
        needs: what must be installed; the first is the language itself.
        start: the command that starts a bot, as `--bot` takes it.
    """

    title: str
    marks: tuple[str, ...]
    plumbing: tuple[str, ...] = ()
    edit: str
    libraries: tuple[str, ...] = ()
    needs: tuple[LanguageNeed, ...] = ()
    build: str = "make"
    test: str = "make test"
    start: str = "./bot"


def _header(package: str, name: str, header: str) -> LanguageNeed:
    return LanguageNeed(
        package=package,
        name=name,
        probe=("g++", "-x", "c++", "-E", "-P", "-"),
        source=f"#if !__has_include(<{header}>)\n#error\n#endif\n",
    )


# By default a JVM's heap may take a quarter of the machine's memory; the arena allows 512 MiB.
_JAVA = "java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -jar bot.jar"
_GSON = "/usr/share/java/gson.jar"
_MAKE = LanguageNeed(package="make", name="GNU Make", probe=("make", "--version"))

LANGUAGES = {
    Language.PYTHON: LanguageTools(  # it needs only the arena itself
        title="Python",
        marks=("bot.py",),
        edit="bot.py",
        build="",
        test="python -m unittest",
        start="bot.py",
    ),
    Language.JAVASCRIPT: LanguageTools(
        title="JavaScript",
        marks=("package.json", "main.js"),
        plumbing=("session.js",),
        edit="bot.js",
        libraries=("ws",),
        needs=(
            LanguageNeed(
                package="nodejs", name="Node", probe=("node", "--version"), oldest=(18, 17)
            ),
        ),
        build="",
        test="node --test",
        start="node main.js",
    ),
    Language.JAVA: LanguageTools(
        title="Java",
        marks=("Makefile", "Bot.java"),
        plumbing=("Session.java", "Makefile"),
        edit="Bot.java",
        needs=(
            LanguageNeed(
                package="default-jdk-headless",
                name="Java",
                probe=("javac", "-version"),
                oldest=(17,),
            ),
            LanguageNeed(
                package="libgoogle-gson-java",
                name="Gson",
                probe=("javap", "-cp", _GSON, "com.google.gson.Gson"),
            ),
            _MAKE,
        ),
        start=_JAVA,
    ),
    Language.CPP: LanguageTools(
        title="C++",
        marks=("Makefile", "main.cpp"),
        plumbing=("session.cpp", "session.hpp", "main.cpp", "bot.hpp", "Makefile"),
        edit="bot.cpp",
        needs=(
            LanguageNeed(package="g++", name="g++", probe=("g++", "-dumpfullversion")),
            _header("libboost-dev", "Boost", "boost/beast.hpp"),
            _header("nlohmann-json3-dev", "nlohmann/json", "nlohmann/json.hpp"),
            _MAKE,
        ),
    ),
    Language.GO: LanguageTools(
        title="Go",
        marks=("Makefile", "bot.go"),
        plumbing=("session.go", "Makefile"),
        edit="bot.go",
        needs=(
            LanguageNeed(package="golang-go", name="Go", probe=("go", "version")),
            LanguageNeed(
                package="golang-github-gorilla-websocket-dev",
                name="gorilla/websocket",
                probe=("go", "list", "github.com/gorilla/websocket"),
                # As in the Makefile.
                environment={"GO111MODULE": "off", "GOPATH": "/usr/share/gocode"},
            ),
            _MAKE,
        ),
    ),
    Language.BASH: LanguageTools(
        title="Bash",
        marks=("bot.sh",),
        plumbing=("session.sh", "session.jq"),
        edit="bot.sh",
        needs=(
            LanguageNeed(package="bash", name="Bash", probe=("bash", "--version")),
            LanguageNeed(package="jq", name="jq", probe=("jq", "--version")),
        ),
        build="",
        test="bash test.sh",
        start="stdio: bash bot.sh",
    ),
}
