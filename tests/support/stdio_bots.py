"""Programs that play over their standard input and output; they use no code of this repository."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

__all__ = ["CHEATS", "INTERPRETER", "PYTHON", "SHELL", "bot", "slow", "write_bots"]

# All that a bot in Python needs, and the same in a shell.
PYTHON = """
import json, sys
def say(**message): print(json.dumps(message), flush=True)
say(type="hello", protocol=1, name=sys.argv[1], games=["ace_king_queen"])
for line in sys.stdin:
    it = json.loads(line)
    if it["type"] == "match":
        say(type="ready", match=it["match"], nonce="n")
    elif it["type"] == "ask":
        say(type="answer", match=it["match"], ask=it["ask"], value=it["legal"][0])
"""
SHELL = r"""
echo '{"type":"hello","protocol":1,"name":"'$1'","games":["ace_king_queen"]}'
field() { echo "$line" | sed -n 's/.*"'$1'":"\([^"]*\)".*/\1/p'; }
while read -r line; do
    match=$(echo "$line" | sed -n 's/.*"match":"\([^"]*\)".*/\1/p')
    case $line in
    *'"type":"match"'*) echo '{"type":"ready","match":"'$match'","nonce":"n"}' ;;
    *'"kind":"open"'*) value=check ;;
    *'"kind":"respond"'*) value=fold ;;
    esac
    case $line in *'"type":"ask"'*)
        echo '{"type":"answer","match":"'$match'","ask":"'$(field ask)'","value":"'$value'"}' ;;
    esac
done
"""
CHEATS = PYTHON.replace('value=it["legal"][0]', 'value="all in"')

INTERPRETER = shlex.quote(sys.executable)


def slow(seconds: float) -> str:
    """The bot in Python, which waits so long before each answer."""
    waits = f'value=(time.sleep({seconds}), it["legal"][0])[1]'
    text = PYTHON.replace('value=it["legal"][0]', waits)
    return text.replace("import ", "import time, ", 1)


def write_bots(folder: Path, *, hello: str = '"me"', **texts: str) -> None:
    """Write bots, each to a file NAME.py; `hello` is their name, and may add fields of `hello`."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text.replace("sys.argv[1]", hello))


def bot(file: str, name: str = "") -> tuple[str, str]:
    """The option that launches such a bot."""
    return "--bot", f"{name and name + '='}stdio: {INTERPRETER} {file}"
