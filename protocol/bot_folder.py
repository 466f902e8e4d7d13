"""Loads the modules in the folder of a bot's file, separately for every bot.

`import helper`, at the top of the file or in a method, finds `helper.py` or the package `helper` in
the folder first, as in a program that is run there, even if the standard library has a module of
that name. The same holds for the helpers' imports, and for relative imports. Two bots never share a
module of their folders, and no other code sees one. The names of our own packages stay ours.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import itertools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from protocol.text_files import other_encoding

__all__ = ["PREFIX", "BotFolder", "is_import", "without_folder"]

PREFIX = "bot_folder_"
"""The beginning of the names under which bots' modules are loaded."""

_OURS = ("arena", "bots", "protocol")
_numbers = itertools.count(1)
_folders: dict[str, BotFolder] = {}  # by the name of its package


def without_folder(text: str) -> str:
    """Replace the loaded names of a bot's modules in an error's text by the names in the bot."""
    return re.sub(rf"\b{PREFIX}\d+\.", "", text)


def is_import(frame: FrameType) -> bool:
    """Whether a frame belongs to the import of a bot's modules, which is never to blame."""
    return frame.f_globals.get("__name__") in (__name__, "importlib._bootstrap")


class _FromSource(SourceFileLoader):
    """Loads a module of a bot's folder from its source, never from cached bytecode.

    Python takes cached bytecode for current if the file's size and second of change are the same,
    so an edit of one character right after a run would be ignored.
    """

    def __init__(self, folder: BotFolder, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._folder = folder

    def get_code(self, fullname: str) -> CodeType:
        """Compile the file."""
        source = self.get_data(self.path)
        if b"\0" in source:  # Python's own error would not name the encoding
            found = other_encoding(source)
            raise SyntaxError(f"expected UTF-8, got what looks like {found}", (self.path, 1, 0, ""))
        return self.source_to_code(source, self.path)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; its imports, even later in functions, search the folder first."""
        vars(module)["__builtins__"] = self._folder.builtins
        super().exec_module(module)


class _InBotFolders:
    """Finds bots' modules by the names of their folders' packages."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module below the package of a bot's folder."""
        folder = _folders.get(fullname.partition(".")[0])
        if folder is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _FromSource(folder, fullname, spec.loader.path)
        return spec


class BotFolder:
    """A folder with a bot's file, as a package that is this bot's alone.

    Attributes:
        builtins: what the code in it has as its built-in names.
    """

    def __init__(self, folder: Path) -> None:
        self._name = f"{PREFIX}{next(_numbers)}"
        self._folder = str(folder.resolve())
        self._own: dict[str, bool] = {}  # by name, whether a module is in the folder
        self.builtins: Mapping[str, Any] = {**vars(builtins), "__import__": self._import}
        package = ModuleType(self._name, f"The modules in {self._folder}.")
        package.__path__ = [self._folder]
        sys.modules[self._name] = package
        _folders[self._name] = self
        others = [finder for finder in sys.meta_path if finder is not _InBotFolders]
        sys.meta_path[:] = [_InBotFolders, *others]
        importlib.invalidate_caches()  # a file may have been added or removed within this second

    def load(self, file: Path) -> ModuleType:
        """Run a file of the folder, and return its module; raises what the file raises."""
        # A bot's file named like a standard module does not mean itself when it imports that name.
        self._own |= dict.fromkeys({file.stem} & sys.stdlib_module_names, False)
        name = f"{self._name}.{file.stem.replace('.', '_')}"
        loader = _FromSource(self, name, os.path.abspath(file))
        spec = importlib.util.spec_from_file_location(name, file, loader=loader)
        assert spec is not None, "a spec with a loader is always made"
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        loader.exec_module(module)
        return module

    def _import(
        self,
        name: str,
        globals_: Mapping[str, Any] | None = None,
        locals_: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Do what the import statement does, but from the folder if it has the module."""
        top = name.partition(".")[0]
        if top not in self._own:
            self._own[top] = self._has(top)
        if level or not self._own[top]:
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)
        found = builtins.__import__(f"{self._name}.{name}", globals_, locals_, fromlist or (), 0)
        return found if fromlist else sys.modules[f"{self._name}.{top}"]

    def _has(self, top: str) -> bool:
        if top in _OURS:
            return False
        spec = PathFinder.find_spec(top, [self._folder])
        if spec is None:
            return False
        # Like Python, take a folder without `__init__.py` only if nothing else has the name.
        if spec.origin is not None:
            return True
        other = importlib.util.find_spec(top)
        return other is None or other.origin is None
