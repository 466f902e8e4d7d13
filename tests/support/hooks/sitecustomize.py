"""Has the frames of every Python program that tests start checked against the schemas.

Its folder is on the `PYTHONPATH` of these programs, so Python imports it. It imports nothing before
the program itself imports the codec, which most never do.
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
    """Installs tests/support/frame_validation.py once the codec is imported."""

    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the codec, and have its loader install the validation at the end."""
        if fullname != "protocol.codec":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        assert spec is not None, "it is being imported"
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
