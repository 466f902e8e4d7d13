"""One match over the network: its seats, limits and progress; the referee plays it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from arena.games.match import MatchResult, MatchState
from arena.games.names import alike, owner_of
from arena.games.rules import Game
from arena.games.shuffle import commitment
from arena.referee.bot_session import BotSession
from arena.referee.seat import MatchSeat
from protocol import messages
from protocol.messages import Ending, Limits, Verdict
from protocol.vocabulary import Settings

__all__ = ["Forgives", "LiveMatch", "OnOver"]

OnOver: TypeAlias = Callable[["LiveMatch", MatchResult, Verdict | None], None]
Forgives: TypeAlias = Callable[[str, Ending, str], bool]
"""(bot, offence, event) → whether that costs the bot no more than the match (J3)."""


class LiveMatch:
    """One match over the network: invited, then played, then over.

    Attributes:
        chairs: its seats; none when it is over.
        names: the public names of the players, by seat.
        nonces: by seat, once it has begun; empty for a seat that was never ready.
        sides: of each seat, whose bot sits there: those of one owner or team are one side (J9).
        versions: by seat, as in `Record.versions`; empty where nobody takes submissions.
        spares_away: whether it is void if a bot is away, which is not blamed.
    """

    __slots__ = (
        "__weakref__",
        "chairs",
        "commitment",
        "forgives",
        "game",
        "id",
        "limits",
        "match",
        "names",
        "nonces",
        "on_over",
        "opened_at",
        "seed",
        "settings",
        "sides",
        "spares_away",
        "versions",
    )

    def __init__(
        self,
        table_id: str,
        game: Game,
        settings: Settings,
        players: Sequence[BotSession],
        limits: Limits,
        on_over: OnOver,
        now: float,
        by_seat: Sequence[Limits] = (),
        forgives: Forgives = lambda bot, kind, event: False,
        versions: Sequence[str] = (),
        spares_away: bool = False,
        teams: Mapping[str, str] = {},
    ) -> None:
        self.id = table_id
        self.game = game
        self.settings = settings
        self.limits = limits
        self.on_over = on_over
        self.forgives = forgives
        self.opened_at = now
        self.seed = secrets.token_bytes(32)
        self.commitment = commitment(self.seed)
        self.match: MatchState | None = None
        self.names = tuple(player.public_name for player in players)
        self.sides = tuple(
            (name in teams, teams.get(name) or alike(owner_of(name))) for name in self.names
        )
        self.versions = tuple(versions)
        self.spares_away = spares_away
        self.nonces: tuple[str, ...] = ()
        self.chairs = [
            MatchSeat(self, seat, player, by_seat[seat] if by_seat else limits)
            for seat, player in enumerate(players)
        ]

    @property
    def is_over(self) -> bool:
        return self.match is not None and self.match.termination is not None

    @property
    def decisions(self) -> int:
        return 0 if self.match is None else len(self.match.answers)

    @property
    def progress(self) -> float:
        """How far it has come: 1 is the end of a match of usual length."""
        return self.decisions / max(1.0, self.game.decisions(self.settings))

    def invite(self, page: str | None) -> None:
        """Invite every seat; `page` is where a browser shows the match, if there is a page."""
        plain: dict[str, Any] = msgspec.to_builtins(self.settings)
        for chair in self.chairs:
            chair.invite(
                messages.Match(
                    match=chair.id,
                    game=self.game.name,
                    seat=chair.seat,
                    seats=self.names,
                    settings=plain,
                    limits=chair.limits,
                    commitment=self.commitment,
                    page=page,
                )
            )

    def begin(self, start: bool = True) -> MatchState:
        """Set the match up from the seed and the nonces that have come; `start` deals."""
        self.nonces = tuple(chair.nonce or "" for chair in self.chairs)
        self.match = MatchState(
            self.game,
            self.settings,
            seed=self.seed,
            nonces=self.nonces,
            start=False,
            enforced=tuple(chair.player.enforced for chair in self.chairs),
            commitment=self.commitment,
            versions=self.versions,
        )
        if start:
            self.match.start()
        return self.match

    def let_go(self) -> None:
        """Forget the seats when it is over.

        They refer to it: a match and its seats in a circle stay in memory until Python looks for
        circles, which takes as long as playing a short match does.
        """
        self.chairs = []
