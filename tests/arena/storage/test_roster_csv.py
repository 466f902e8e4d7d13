"""What a spreadsheet writes becomes a class, or one line says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from arena.storage.roster_csv import Student, class_in, read_class
from protocol.errors import UsageError

ANN = Student(name="ann", email="ann@school", team="red")
BEN = Student(name="ben", email="", team="")


COLUMNS = ":{}: expected the columns name and, if you like, email and team, got {}"
NO_SLASH = ":2: expected a name without '/', which begins the name of one of its programs, got "


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "class.csv"


@pytest.fixture
def refuses(file: Path) -> Callable[[bytes], str]:
    """The error about a file, after its name."""

    def call(data: bytes) -> str:
        file.write_bytes(data)
        with pytest.raises(UsageError) as why:
            read_class(file)
        text = str(why.value)
        assert "\n" not in text
        assert text.startswith(str(file))
        return text.removeprefix(str(file))

    return call


LISTS = {
    "plain": b"name,email,team\nann,ann@school,red\nben,,\n",
    "short rows": b"name,email,team\r\nann,ann@school,red\r\nben\r\n",
    "Excel": b"\xef\xbb\xbfname;email;team\r\nann;ann@school;red\r\nben;;\r\n",
    "tabs": b"name\temail\tteam\nann\tann@school\tred\nben\n",
    "another order": b"Team, NAME ,email\nred , ann,ann@school\n,ben",
    "German Excel": b"\xef\xbb\xbfName;E-Mail;Team\r\nann;ann@school;red\r\nben;;\r\n",
    "Excel's Unicode text": "name\temail\tteam\r\nann\tann@school\tred\r\nben\r\n".encode("utf-16"),
    "mail": b"name,Mail,team\nann,ann@school,red\nben,,\n",
    "empty lines": b'\n"name","email","team"\n\n"ann","ann@school","red"\n,,\nben,,,,\n',
}


@pytest.mark.parametrize("kind", LISTS)
def test_a_class(file: Path, kind: str) -> None:
    file.write_bytes(LISTS[kind])

    assert read_class(file) == (ANN, BEN)


def test_what_has_no_column_is_not_said_to_be_empty(file: Path) -> None:
    file.write_text("name\nann\n")

    assert read_class(file) == (Student(name="ann", email=None, team=None),)


def test_letters_are_composed_and_separators_may_be_quoted(file: Path) -> None:
    file.write_text('name\n"Jose\u0301, M."\n', encoding="utf-8")

    assert read_class(file)[0].name == "Jos\u00e9, M."


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ": expected a line of column names, got an empty file"),
        (b"name,email\n", ": expected at least one name, got none"),
        (b"name,phone\nann,x\n", COLUMNS.format(1, "'phone'")),
        (b"name,email,E-Mail\nann,x,y\n", COLUMNS.format(1, "'email' twice")),
        (b"name,name\nann,x\n", COLUMNS.format(1, "'name' twice")),
        (b"\nemail,team\nann,x\n", COLUMNS.format(2, "no column name")),
        (b"name,team\n,red\n", ":2: expected a name, got none"),
        (b"name\nann\nben\nann\n", ":4: 'ann' is in line 2 already"),
        (b"name\nann\nben\nANN\n", ":4: 'ANN' is in line 2 already, as 'ann', which looks alike"),
        (
            b"name\n\xe3\x85\xa4\n",
            ":2: expected a name with letters that can be seen, got '\\u3164'",
        ),
        ("name\nann／gin\n".encode(), f"{NO_SLASH}'ann／gin'"),
        (b"name\na\x07b\n", ":2: expected a name of printable letters, got 'a\\x07b'"),
        (b'name\n"ann\nben"\n', ":3: expected a name of printable letters, got 'ann\\nben'"),
        (b"name\n" + b"x" * 65 + b"\n", ":2: expected a name of at most 64 letters, got 65"),
        (b"name\nann/gin\n", f"{NO_SLASH}'ann/gin'"),
        (
            b"name,email\nann," + b"x" * 300 + b"\n",
            ":2: expected an address of at most 254 letters, got 300",
        ),
        (
            b"name,team\nann,\xe2\x80\xae\n",
            ":2: expected a team of printable letters, got '\\u202e'",
        ),
        (
            b"name,team\nann,red,7\n",
            ":2: expected 2 fields, got 3; quote what has a separator in it",
        ),
        (
            b"name\nann\nb\xe9n\n",
            ": expected text in UTF-8, got what looks like Windows-1252 (b'\\xe9' in line 3); "
            "save it as UTF-8",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    refuses: Callable[[bytes], str], data: bytes, text: str
) -> None:
    assert refuses(data) == text


def test_a_quote_that_is_not_closed_is_told_with_its_line(refuses: Callable[[bytes], str]) -> None:
    assert refuses(b'name\nann\n"ben\n').startswith(":3: ")


def test_a_text_from_elsewhere_is_read_like_a_file() -> None:
    assert class_in("\ufeffname;team\r\nann;red\r\n\r\nben;\r\n", "x") == (
        Student(name="ann", team="red"),
        Student(name="ben", team=""),
    )
    with pytest.raises(UsageError, match=r"^x:3: 'ann' is in line 2 already$"):
        class_in("name\nann\nann\n", "x")
