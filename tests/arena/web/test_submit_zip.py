"""The archive that the page makes of several files, read by the arena and by Python."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from arena.sandbox.archive import canonical, unpack
from tests.support.needs import tool

MODULE = Path(__file__).parents[3] / "arena/web/page/views/submit_zip.js"
FILES = {
    "bot.py": "print('é')\n" * 1000,
    "Übung 李.txt": "",
    "data.jsonl": "".join(map(chr, range(32, 0x2FF))),
}
ZIP = """
const { zipOf } = await import(process.argv[1]);
const files = Object.entries(JSON.parse(process.argv[2])).map(([name, text]) => [name, new TextEncoder().encode(text)]);
process.stdout.write(Buffer.from(await zipOf(files).arrayBuffer()));
"""


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    module = shutil.copy(MODULE, tmp_path / "zip.mjs")
    words = (tool("node"), "--input-type=module", "-e", ZIP, str(module), json.dumps(FILES))
    return subprocess.run(words, capture_output=True, check=True, timeout=30).stdout


def test_an_archive_of_the_page_is_a_program(archive: bytes, tmp_path: Path) -> None:
    tar, folder = io.BytesIO(), tmp_path / "program"
    folder.mkdir()

    canonical("files.zip", io.BytesIO(archive), tar)
    tar.seek(0)
    unpack(tar, folder)

    assert {file.name: file.read_text("utf-8") for file in folder.iterdir()} == FILES
    assert zipfile.ZipFile(io.BytesIO(archive)).testzip() is None
