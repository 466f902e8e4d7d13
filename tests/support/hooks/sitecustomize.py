"""Found by every Python program that tests start, as its folder is on their `PYTHONPATH`: has its frames held against the schemas.

Nothing is imported before the program itself imports the codec: most never do.
"""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class AfterTheCodec(MetaPathFinder):
    """Installs tests/support/frame_validation.py as soon as the codec is there."""

    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The codec as it is, but for what happens behind its last line."""
        if fullname != "protocol.codec":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        assert spec is not None, "somebody is just importing it"
        loader: Any = spec.loader
        executed = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            executed(module)
            try:
                from tests.support import frame_validation
            except ImportError:  # it runs from an installation, without our tests
                return
            frame_validation.install(frame_validation.note_in_file)

        loader.exec_module = exec_module
        return spec


if "ARENA_TEST_FAULTS" in os.environ:
    sys.meta_path.insert(0, AfterTheCodec())
