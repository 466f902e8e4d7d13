"""Who is here to compete, and whose names are taken."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from arena.competitions.bot_supervisor import BotSupervisor
from arena.competitions.competition import Competition
from arena.engine.names import alike, owner_of
from arena.referee.sessions import BotSessions

__all__ = ["Presence"]


class Presence:
    """The bots that are here, as competitions see them: without people, and without the house bots that fill others' chairs.

    Args:
        players: all that are connected, or may come back.
        supervisor: the bots that the arena has launched.
        competitions: those that are on, at any time.
        aside: says who does not compete: people, and the house bots that play with them.
    """

    def __init__(
        self,
        players: BotSessions,
        supervisor: BotSupervisor,
        competitions: Sequence[Competition],
        aside: Callable[[], Collection[str]],
    ) -> None:
        self._players = players
        self._supervisor = supervisor
        self._competitions = competitions
        self._aside = aside

    # --- who plays a game ---

    def names(self, game: str) -> tuple[str, ...]:
        """The connected bots that play a game, in the order in which they came."""
        fillers = self.temporary_house_bots
        return tuple(
            player.name
            for player in self._players.of_game(game)
            if player.connection is not None and player.name not in fillers
        )

    def count(self, game: str) -> int:
        """How many `names` there are, however many are connected."""
        others = (self._players.get(name) for name in self.temporary_house_bots)
        return self._players.count(game) - sum(
            one is not None and one.connection is not None and game in one.games for one in others
        )

    def saw(self, game: str, names: Collection[str]) -> None:
        """These take part in a game's competition."""
        self._players.see(game, names)

    def has_new(self, game: str) -> bool:
        """Whether one of the `names` was not among those that `saw` was told of last."""
        fillers = self.temporary_house_bots
        return any(one not in fillers for one in self._players.unseen(game))

    def is_awaiting(self, game: str) -> bool:
        """Whether a bot that plays a game has lost its connection, and may come back within its grace."""
        return any(
            player.connection is None and not player.leaving
            for player in self._players.of_game(game)
        )

    @property
    def temporary_house_bots(self) -> set[str]:
        """The names of people, and of house bots that are there for one competition or for people."""
        fillers = {name for one in self._competitions for name in one.temporary_house_bots}
        return fillers.union(self._aside())

    # --- names ---

    @property
    def taken(self) -> set[str]:
        """Names that are somebody's: of who is here or on its way, and of all that take part in what is played."""
        playing = (name for one in self._competitions for name in one.plan.players)
        return {*self._players, *self._supervisor, *playing, *self._aside()}

    def is_taken(self, name: str) -> bool:
        """Whether one of the names that are `taken` looks like this."""
        if self._players.like(name) is not None:
            return True
        playing = (bot for one in self._competitions for bot in one.plan.players)
        others = (*self._supervisor, *playing, *self._aside())
        return alike(name) in map(alike, others)

    def keep_spellings(self, names: Iterable[str]) -> None:
        """Whoever has played keeps its spelling as long as this arena runs."""
        for name in names:
            self._players.spellings.add(name)

    def spelled(self, name: str) -> str:
        """How a bot that is called so spells its name."""
        return self._players.spellings.of(name)

    def use_of(self, name: str) -> str | None:
        """What somebody's bots do here now, in words; None if none is here.

        Args:
            name: of the owner.
        """
        key = alike(name)
        for player in self._players.values():
            if alike(owner_of(player.name)) == key:
                if player.connection is None:
                    return f"{player.name} has lost its connection and may come back"
                return f"{player.name} is connected"
        for one in self._competitions:
            for bot in one.plan.players:
                is_out = bot in one.ledger.book.removed
                if alike(owner_of(bot)) == key and not is_out:
                    return f"{bot} takes part in {one.id}, which is not over"
        for other in (*self._supervisor, *self._aside()):
            if alike(owner_of(other)) == key:
                return f"{other} is here"
        return None
