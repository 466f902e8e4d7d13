"""Where a request comes from, and whose pages may open WebSockets: the words of `origins.cases`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.datastructures import Headers

from arena.server.origins import (
    Origins,
    Proxies,
    below,
    is_loopback,
    read_base_path,
    read_network,
    read_origin,
)
from protocol.errors import UsageError
from tests.support.cases import CaseFile, StepByStep

READ: dict[str, Callable[[str], object]] = {
    "origin": read_origin,
    "network": read_network,
    "path": read_base_path,
}
CASES = CaseFile(Path(__file__).with_name("origins.cases"))


def headers(**lines: list[str]) -> Headers:
    made = Headers()
    for name, values in lines.items():
        for value in values:
            made[name.replace("_", "-")] = value
    return made


class Door(StepByStep):
    """An arena's origins and proxies; in a word `_` is a blank, `-` nothing, `+` parts two."""

    def __init__(self) -> None:
        super().__init__()
        self.origins, self.proxies = Origins(), Proxies()

    def does(self, *words: str) -> Iterator[str]:
        what, *rest = (word.replace("_", " ") for word in words)
        many = [[] if word == "-" else word.split("+") for word in rest]
        match what:
            case "listens":
                for host in rest:
                    self.origins.listens(host)
            case "allows":
                self.origins.allow(rest)
            case "trusts":
                self.proxies.trust(rest)
            case "page":
                yield self._said(self.origins.refusal(headers(Origin=many[0], Host=many[1])))
            case "host":
                yield self._said(self.origins.host_refusal(headers(Host=many[0])))
            case "from":
                yield self.proxies.origin(rest[0], headers(X_Forwarded_For=many[1]))
            case "https":
                yield str(self.proxies.is_https(rest[0], headers(X_Forwarded_Proto=many[1])))
            case "before":
                yield self.proxies.before(rest[0], int(rest[1]))
            case "near":
                yield " ".join(str(is_loopback(host)) for host in rest)
            case "below":
                yield str(below(rest[0], rest[1]))
            case "refused":
                for text in rest[1:]:
                    with pytest.raises(UsageError, match=r"^expected [^\n]*$"):
                        READ[rest[0]](text)
            case _:
                yield str(READ[what]("" if rest == ["-"] else rest[0]))

    def _said(self, why: str | None) -> str:
        assert "\n" not in (why or ""), "it is one line"
        return "in" if why is None else why.removeprefix("expected ").split(" ")[1]


@pytest.mark.parametrize("title", CASES.titles)
def test_a_case_of_origins(title: str) -> None:
    CASES.check(title, Door().step)
