"""Text as PowerShell, Notepad and Excel write it is read; the refusal of others names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.errors import UsageError
from protocol.text_files import read_text, text_lines

TEXT = "name\tteam\r\nMüller\tred\r\nZoë\t\r\n"
ODD = {
    "UTF-16 without a byte order mark": TEXT.encode("utf-16-be"),
    "UTF-32": TEXT.encode("utf-32"),
    "Windows-1252 (b'\\xfc' in line 2)": TEXT.encode("cp1252"),
    "code page 850 (b'\\x81' in line 2)": TEXT.encode("cp850"),
    "damaged UTF-16": TEXT.encode("utf-16")[:-1],
    "a binary file": b"PK\x03\x04\x14\0",
    "a binary file;": b"SQLite format 3" + b"\0",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_text_is_the_same_in_each_encoding(tmp_path: Path, encoding: str) -> None:
    for text in (TEXT, ""):
        (tmp_path / "file").write_bytes(text.encode(encoding))
        assert read_text(tmp_path / "file") == text
        assert [*text_lines(tmp_path / "file")] == text.encode().splitlines(keepends=True)


@pytest.mark.parametrize("name", ODD)
def test_other_encodings_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(ODD[name])
    with pytest.raises(UsageError) as refused:
        read_text(tmp_path / "file")

    why = f"expected text in UTF-8, got what looks like {name.strip(';')}; save it as UTF-8"
    assert str(refused.value) == f"{tmp_path / 'file'}: {why}"
