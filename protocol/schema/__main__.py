"""`python -m protocol.schema [--check]`: writes the generated files, or lists outdated ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from protocol.errors import UsageError
from protocol.schema.generated import stale

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 if a file is outdated or cannot be generated."""
    parser = argparse.ArgumentParser(
        prog="python -m protocol.schema",
        description="Generate the schemas, and the tables and conversations "
        "in the pages protocol/*.md, from the types.",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; say what is stale")
    is_check = parser.parse_args(arguments).check
    try:
        found = stale()
    except (UsageError, OSError, UnicodeError) as error:
        print(f"cannot generate: {error}", file=sys.stderr)
        return 1
    for path, text in found.items():
        if is_check:
            print(f"stale: {path}; run `python -m protocol.schema`", file=sys.stderr)
        elif text is None:
            path.unlink()
            print(f"removed {path}")
        else:
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {path}")
    return int(is_check and bool(found))


if __name__ == "__main__":
    sys.exit(main())
