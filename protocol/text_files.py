r"""Text files as people's programs write them: UTF-8 or, with a byte order mark, UTF-16.

PowerShell's `>` and Excel's "Unicode text" write UTF-16; Notepad and Excel's "CSV UTF-8" put a mark
before UTF-8. Other encodings are refused in one line that names the one it seems to be, but never
guessed: a wrong guess would change names without a word. Line ends stay as they are.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path

from protocol.errors import UsageError

__all__ = ["decode_text", "other_encoding", "read_text", "text_lines"]

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)  # the first begins with the mark of UTF-16
_SAMPLE = 1000  # bytes to inspect to find the encoding
_CONTROLS = frozenset(range(1, 32)) - {*b"\t\n\f\r\x1b"}  # bytes that no text has


def read_text(path: Path) -> str:
    """Read a text file and decode it with `decode_text`; errors begin with its path.

    Raises:
        OSError: the file cannot be read.
        UsageError: it has another encoding.
    """
    try:
        return decode_text(path.read_bytes())
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def decode_text(data: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark, or UTF-16 with one.

    Raises:
        UsageError: the data has another encoding; the text names the likely one.
    """
    if data.startswith(_UTF_16) and not data.startswith(_UTF_32):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError:
            seems: str | None = "damaged UTF-16"
    elif (seems := other_encoding(data)) is None:
        return data.decode("utf-8-sig")
    raise UsageError(f"expected text in UTF-8, got what looks like {seems}; save it as UTF-8")


def text_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file in UTF-8, if it is a text that `decode_text` reads.

    A line in another encoding stays as it is. Only a UTF-16 file is read at once.

    Raises:
        OSError: the file cannot be read.
        UsageError: it is UTF-16, but damaged.
    """
    with path.open("rb") as file:
        first = file.readline()
        if first.startswith(_UTF_16):
            yield from io.BytesIO(read_text(path).encode())
            return
        if first := first.removeprefix(codecs.BOM_UTF8):
            yield first
        yield from file


def other_encoding(data: bytes) -> str | None:
    """Name the likely encoding of a text; None for UTF-8 with or without a mark."""
    if data.startswith(_UTF_32):
        return "UTF-32"
    if data.startswith(_UTF_16):
        return "UTF-16"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        start = error.start
    else:
        if b"\0" not in data:
            return None
        start = 0
    sample = data[start : start + _SAMPLE]
    if not _CONTROLS.isdisjoint(sample):
        return "a binary file"
    if b"\0" in sample:
        is_wide = sample.count(0) * 3 > len(sample)
        return "UTF-16 without a byte order mark" if is_wide else "a binary file"
    high = [byte for byte in sample if byte >= 0x80]
    # Windows has letters with accents from 0xC0 on, its consoles mostly below 0xA6.
    is_windows = sum(byte >= 0xC0 for byte in high) * 2 >= len(high)
    name = "Windows-1252" if is_windows else "code page 850"
    return f"{name} ({data[start : start + 1]!r} in line {data.count(10, 0, start) + 1})"
