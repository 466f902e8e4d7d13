"""What a folder that was handed in is taken for, and what is said where that cannot be told."""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from arena.authoring.starter import starter
from arena.games.catalogue import GAMES
from arena.sandbox.archive import canonical, pack, unpack
from arena.sandbox.languages import LANGUAGES, Language
from arena.sandbox.manifest import ProgramManifest, manifest_of
from protocol.errors import UsageError

CLIENT = (sys.executable, "-P", "-m", "bots")
MAKE = ("make", "--always-make")


@pytest.fixture(autouse=True)
def _programs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that start bots or build them, on every machine."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("java", "make", "node"):
        (folder / name).touch(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{folder}")


def handed_in(path: Path, into: Path) -> Path:
    """The folder that a program is unpacked into."""
    name, sent = pack(path)
    tar = io.BytesIO()
    canonical(name, io.BytesIO(sent), tar)
    tar.seek(0)
    into.mkdir()
    unpack(tar, into)
    return into


def folder_of(folder: Path, files: Mapping[str, str], *executable: str) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if name in executable else 0o644)
    return folder


def of(folder: Path, *names: str) -> ProgramManifest:
    return manifest_of(folder_of(folder, dict.fromkeys(names, "")))


def with_toml(text: str) -> dict[str, str]:
    return {"bot.toml": text} if text else {}


def said(folder: Path, text: str, *names: str) -> ProgramManifest:
    """What a `bot.toml` beside some files makes of them; `bot` is executable."""
    return manifest_of(folder_of(folder, dict.fromkeys(names, "") | {"bot.toml": text}, "bot"))


# ---- The starters


@pytest.mark.parametrize("game", ["high_low", "blackjack"])
@pytest.mark.parametrize("language", Language)
def test_a_starter_is_known_again(language: Language, game: str, tmp_path: Path) -> None:
    made = starter(GAMES[game], language, "mine")
    folder = handed_in(folder_of(tmp_path / "mine", made.files), tmp_path / "out")
    manifest = manifest_of(folder)

    assert manifest.language == language
    assert manifest.stdio == (language is Language.BASH)
    assert manifest.build == (MAKE if "make" in made.files["README.md"] else ())
    start = LANGUAGES[language].start.removeprefix("stdio: ")
    if language is Language.PYTHON:
        assert manifest.command[:5] == (*CLIENT, "bot.py")
    else:
        assert manifest.command == tuple(shlex.split(start))
    assert manifest.games == ()


@pytest.mark.parametrize(
    ("package", "why"),
    [
        ('{"dependencies": {"ws": "^8", "lodash": "^4"}}', 'no "lodash": an arena has no network'),
        ('{"dependencies": {"@a/b": "1", "../../etc": "1"}}', 'no "../../etc", "@a/b": an arena'),
        ('{"dependencies": []}', r"package\.json: .*object"),
        ("{", r"package\.json"),
        ("[" * 100_000, r"package\.json"),
    ],
)
def test_a_library_that_is_not_there_is_named(package: str, why: str, tmp_path: Path) -> None:
    files = {"package.json": package, "main.js": "", "node_modules/ws/package.json": "{}"}

    with pytest.raises(UsageError, match=why):
        manifest_of(folder_of(tmp_path, files))


def test_libraries_in_the_folder_are_enough(tmp_path: Path) -> None:
    files = {
        "package.json": '{"dependencies": {"ws": "^8", "@a/b": "1"}}',
        "main.js": "",
        "node_modules/ws/index.js": "",
        "node_modules/@a/b/index.js": "",
    }

    assert manifest_of(folder_of(tmp_path, files)).command == ("node", "main.js")


# ---- A strategy


def test_a_single_file_is_started_by_our_client(tmp_path: Path) -> None:
    (tmp_path / "ann.py").write_text("class Bot: ...")
    manifest = manifest_of(handed_in(tmp_path / "ann.py", tmp_path / "out"))

    assert manifest.command[:7] == (*CLIENT, "ann.py", "--name", "ann")
    assert (manifest.language, manifest.stdio, manifest.build) == ("python", False, ())


@pytest.mark.parametrize(
    ("names", "toml", "strategy"),
    [
        (["my bot.py"], "", "my bot.py"),
        (["ann.py", "test_ann.py", "data.json", "lib/x.py"], "", "ann.py"),
        (["a.py", "bot.py", "cards.py"], "", "bot.py"),
        (["ann.py", "ben.py", "Makefile"], "run = 'ann.py'\nbuild = 'make'", "ann.py"),
        (["bot.py"], "games = ['gin_rummy']", "bot.py"),
    ],
)
def test_the_strategy_is_found(names: list[str], toml: str, strategy: str, tmp_path: Path) -> None:
    manifest = manifest_of(folder_of(tmp_path, dict.fromkeys(names, "") | with_toml(toml)))

    assert manifest.command[:5] == (*CLIENT, strategy)
    assert manifest.build == (("make",) if "make" in toml else ())
    assert manifest.games == (("gin_rummy",) if "games" in toml else ())


def test_a_script_that_starts_itself_is_started_as_it_says(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"bot.py": "#!/usr/bin/env python3\n"}, "bot.py")

    assert manifest_of(folder) == ProgramManifest("python", ("./bot.py",), stdio=False)


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["ann.py", "ben.py"], 'got "ann.py", "ben.py"; call the one with the strategy bot.py'),
        (["bot.js"], 'expected a FILE.py .* got "bot.js"'),
        (["a", "b", "c", "d", "e", "f"], 'got "a", "b", "c", "d" and 2 more'),
        (["src/bot.py"], "got folders only"),
        (["Makefile", "main.cpp", "bot.py"], r"got Python \(bot.py\) and C\+\+ .* run = 'bot.py'"),
        (["package.json", "bot.js"], 'got "bot.js", "package.json"'),
    ],
)
def test_it_says_what_it_looked_for_and_found(names: list[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        of(tmp_path, *names)

    assert str(refused.value).isprintable()


# ---- bot.toml


def test_it_says_how_a_bot_is_built_and_started_and_what_it_plays(tmp_path: Path) -> None:
    text = "run = 'stdio: ./bot --fast'\nbuild = 'make -j2'\ngames = ['gin', 'blackjack', 'gin']"

    assert said(tmp_path, text, "Makefile", "bot.go") == ProgramManifest(
        "go", ("./bot", "--fast"), True, ("make", "-j2"), ("gin_rummy", "blackjack")
    )


@pytest.mark.parametrize(
    ("toml", "names", "language", "command"),
    [
        ("run = 'node bot.js'", "bot.js", "javascript", "node bot.js"),
        ("run = 'java -cp x.jar Bot'", "x.jar", "java", "java -cp x.jar Bot"),
        ("run = 'java -cp /usr/share/x.jar Bot'", "", "java", "java -cp /usr/share/x.jar Bot"),
        pytest.param(
            *("run = 'bash run.sh'", "run.sh bot.js", "bash", "bash run.sh"),
            marks=pytest.mark.needs("bash"),
        ),
        ("run = './bot'", "bot bot.cpp", "cpp", "./bot"),
        ("run = 'bot'", "bot bot.cpp bot.go", "other", "./bot"),
        ("run = './bot'", "bot bot.rs", "other", "./bot"),
        ("run = 'out/bot'\nbuild = 'make'", "bot", "other", "out/bot"),  # the build makes it
        ("run = 'mine'\nbuild = 'make'", "bot", "other", "./mine"),
        ("", "Makefile main.cpp plot.py", "cpp", "./bot"),
    ],
)
def test_the_language_is_what_starts_it_or_what_its_files_are(
    toml: str, names: str, language: str, command: str, tmp_path: Path
) -> None:
    files = dict.fromkeys(names.split(), "") | with_toml(toml)
    manifest = manifest_of(folder_of(tmp_path, files, "bot"))

    assert (manifest.language, manifest.command) == (language, tuple(command.split()))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("run = 'node bot.js'\nrunn = 1", "unknown field `runn`"),
        ("run = 7", r"expected run and build, command lines.*got `int` - at `\$\.run`"),
        ("games = 'high_low'", r"a list of names; .*\$\.games"),
        ("games = [1]", r"\$\.games\[0\]"),
        ("games = ['poker']", "unknown game 'poker'; expected one of: ace_king_queen"),
        ("run = './bot'", "expected a program on PATH or in its folder, got './bot'"),
        ("run = 'nowhere --fast'", "got 'nowhere'"),
        ("run = './readme'", "not executable"),
        ("run = '/usr/bin/node bot.js'", 'absolute path "/usr/bin/node"; write the name'),
        ("run = 'node /home/ann/bot.js'", 'absolute path "/home/ann/bot.js"'),
        ("run = '../bot'", "leads out"),
        ("run = 'node ../../bot.js'", "leads out"),
        ("run = ''", "expected a command line"),
        ("run = 'stdio:'", "expected a command line"),
        ('run = "node \'bot.js"', "quotes closed"),
        (r'run = "node\u0000"', "without NUL"),
        (f"run = '{'x' * 300}'", "File name too long"),
        ("run = 'node bot.js'\nbuild = 'nomake'", "got 'nomake'"),
        ("run = 'node bot.js'\nbuild = '/bin/sh x'", "for build, got the absolute path"),
        ("run = 'node bot.js'\nbuild = 'stdio: make'", "belongs to run"),
        ("run = 'node bot.js'\nbuild = 'setup.py'", "setup.py.*neither|not executable"),
        ("build = 'make'", "expected run beside build"),
        ("run =", "expected TOML"),
        ("x = " + "[" * 5_000, "expected TOML"),
        ("x = " + "9" * 5_000, "expected TOML"),
        ("#" * 70_000, "64 KiB"),
        ("", "bot.toml: expected a FILE.py"),
    ],
)
def test_a_line_says_what_is_wrong_with_it(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        said(tmp_path, text, "readme")

    assert str(refused.value).startswith("bot.toml: ")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) <= 420


@pytest.mark.parametrize("file", ["bot.toml", "package.json"])
def test_files_as_windows_writes_them(tmp_path: Path, file: str) -> None:
    texts = {"bot.toml": "games = ['akq'] # für mich\n", "package.json": '{"ü": 1}\n'}
    folder = folder_of(tmp_path, texts | {"main.js": ""})
    for encoding in ("utf-8-sig", "utf-16"):
        (folder / file).write_text(texts[file], encoding=encoding, newline="\r\n")
        assert manifest_of(folder).games == ("ace_king_queen",)
    (folder / file).write_text(texts[file], encoding="cp1252")

    with pytest.raises(UsageError, match=f"{file}: expected text in UTF-8, .*Windows-1252"):
        manifest_of(folder)
