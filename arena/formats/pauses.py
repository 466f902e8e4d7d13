"""How long an owner rests on a ladder after its offences (J3).

Everything of that owner rests, as one token may have many names. Each further offence doubles the pause; matches that ran their
course work offences off, and so does time, so that bad luck is forgotten. What counts are the records alone, so that a restart changes nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arena.engine.match import Result
from arena.engine.names import alike, owner_of
from protocol.messages import Ending

__all__ = ["FIRST_S", "LAPSE_S", "LONGEST_S", "MATCHES_EACH", "Pauses"]

FIRST_S = 10.0
"""After the first offence: as long as a lost connection may hold a match up on a ladder."""
LONGEST_S = 900.0
"""After many: an evening has room for a dozen of them."""
MATCHES_EACH = 10
"""So many matches in a row that ran their course work one offence off."""
LAPSE_S = 3600.0
"""So does so much time without an offence: who mends a bot at home need not pay for it next week."""
_MOST = 8  # offences that count: the eighth reaches LONGEST_S


class _Account(msgspec.Struct):
    """What stands against an owner: its offences, the matches in a row since, and its latest pause."""

    offences: int = 0
    completed: int = 0
    until: float = 0.0  # in Unix seconds

    @property
    def pause_s(self) -> float:
        return float(min(FIRST_S * 2 ** (self.offences - 1), LONGEST_S))

    def left_s(self, now: float) -> float:
        """What is left of its pause. A clock that was put back since makes none longer: it ends it."""
        left_s = self.until - now
        return left_s if 0 < left_s <= self.pause_s else 0.0


class Pauses:
    """The pauses of all owners on one ladder."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def add(self, players: Sequence[str], result: Result, at: float) -> None:
        """Count a match that ended then, in Unix seconds; call it in the order in which they ended.

        What ends while its owner rests began before the pause, and counts for nothing: many matches that end by one
        lost connection are one offence.
        """
        offenders = {_owner(players[seat]) for seat in result.out}
        for owner in set(map(_owner, players)):
            account = self._accounts.get(owner)
            if account is not None and account.left_s(at):
                continue
            if owner in offenders:
                account = self._accounts.setdefault(owner, _Account())
                lapsed = max(0, int((at - account.until) / LAPSE_S))
                account.offences = min(max(0, account.offences - lapsed) + 1, _MOST)
                account.completed = 0
                account.until = at + account.pause_s
            elif account is not None and result.termination.kind is Ending.COMPLETED:
                self._work_off(owner, account)

    def left_s(self, owner: str, now: float) -> float:
        """How long an owner still rests, in seconds; `now` is in Unix seconds."""
        account = self._accounts.get(_owner(owner))
        return 0.0 if account is None else account.left_s(now)

    def _work_off(self, owner: str, account: _Account) -> None:
        account.completed += 1
        if account.completed == MATCHES_EACH:
            account.completed = 0
            account.offences -= 1
            if not account.offences:
                del self._accounts[owner]


def _owner(name: str) -> str:
    """Whose a name is; who comes back with another spelling, when nobody has the first one any more, has the same pause."""
    return alike(owner_of(name))
