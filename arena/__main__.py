"""`python -m arena` is the `arena` command."""

from __future__ import annotations

import os
import sys

from arena.cli import main

if __name__ == "__main__":
    # Of `../venv/bin/python` it names a folder that is in no bot's sandbox.
    sys.executable = os.path.abspath(sys.executable)
    sys.exit(main())
