"""How long an owner's bots rest on a ladder after an offence (J3).

All bots of an owner rest, as one token may have many names. Each further offence doubles the pause.
Completed matches cancel offences, and so does time, so that bad luck is forgotten. Pauses are
computed from the records alone, so a restart changes nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arena.games.match import Result
from arena.games.names import alike, owner_of
from protocol.messages import Ending

__all__ = ["FIRST_S", "LAPSE_S", "LONGEST_S", "MATCHES_EACH", "Pauses"]

FIRST_S = 10.0  # the first pause: as long as a lost connection may delay a match on a ladder
LONGEST_S = 900.0  # an evening has room for a dozen of these
MATCHES_EACH = 10  # completed matches in a row that cancel one offence
LAPSE_S = 3600.0  # without an offence cancels one, too: a bot fixed since need not pay next week
_MOST = 8  # offences that count: the eighth reaches LONGEST_S


class _Account(msgspec.Struct):
    """The offences of one owner that still count."""

    offences: int = 0
    completed: int = 0  # matches in a row since the latest of them
    until: float = 0.0  # the end of the latest pause, in Unix seconds

    @property
    def pause_s(self) -> float:
        return float(min(FIRST_S * 2 ** (self.offences - 1), LONGEST_S))

    def left_s(self, now: float) -> float:
        """How much of the pause is left, in seconds; 0 if the clock was put back since."""
        left_s = self.until - now
        return left_s if 0 < left_s <= self.pause_s else 0.0


class Pauses:
    """The pauses of all owners on one ladder."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def add(self, players: Sequence[str], result: Result, at: float) -> None:
        """Count a match that ended at `at`, in Unix seconds; call this in the order of the ends.

        A match that ends while the owner rests began before the pause, and does not count: many
        matches ended by one lost connection are one offence.
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
                account.completed += 1
                if account.completed == MATCHES_EACH:
                    account.completed = 0
                    account.offences -= 1
                if not account.offences:
                    del self._accounts[owner]

    def left_s(self, owner: str, now: float) -> float:
        """How many seconds an owner still rests at `now`, in Unix seconds."""
        account = self._accounts.get(_owner(owner))
        return 0.0 if account is None else account.left_s(now)


def _owner(name: str) -> str:
    """A key for the owner under any spelling: coming back as `ANN` for `ann` ends no pause."""
    return alike(owner_of(name))
