"""Sets up a bare checkout as the README's first line says, plays the whole demo, and looks at the result.

It needs a network, for pip, and takes some minutes: `python -m tests.tools.bare_checkout`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from arena.games.catalogue import GAMES
from protocol.messages import Ending

ROOT = Path(__file__).resolve().parents[2]


def copy_checkout(folder: Path) -> None:
    """All files of this checkout that are not ignored, and nothing else."""
    words = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    for file in filter(None, listed.stdout.split("\0")):
        if (ROOT / file).is_file():  # else it has just been removed
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file)


def main() -> int:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first, *_ = re.findall(r"^python3 -m venv.*$", readme, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        copy_checkout(Path(folder))
        done = subprocess.run(
            first, shell=True, cwd=folder, capture_output=True, text=True, check=False
        )
    print(done.stdout + done.stderr)
    missing = [name for name, game in GAMES.items() if game.vocabulary.title not in done.stdout]
    out = re.findall(rf"^(\S+) .*\(({'|'.join(Ending)})\)$", done.stdout, re.MULTILINE)
    three = sorted(kind for bot, kind in out if "rogue" in bot) == ["crash", "illegal", "timeout"]
    return int(done.returncode != 0 or bool(missing) or not three or len(out) != 3)


if __name__ == "__main__":
    sys.exit(main())
