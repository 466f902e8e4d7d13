"""Who is here to compete, and whose names are taken."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from arena.competitions.bot_supervisor import BotSupervisor
from arena.competitions.competition import Competition
from arena.engine.names import alike, owner_of
from arena.referee.sessions import BotSessions

__all__ = ["Presence"]


class Presence:
    """The bots that may compete: without people, and without other competitions' house bots.

    Args:
        players: all bots that are connected or may come back.
        competitions: those that are on, at any time.
        non_competing: returns the names of people, and of the house bots that play with them.
    """

    def __init__(
        self,
        players: BotSessions,
        supervisor: BotSupervisor,
        competitions: Sequence[Competition],
        non_competing: Callable[[], Collection[str]],
    ) -> None:
        self._players = players
        self._supervisor = supervisor
        self._competitions = competitions
        self._non_competing = non_competing

    # --- who plays a game ---

    def names(self, game: str) -> tuple[str, ...]:
        """The connected bots that play a game and do not leave, in the order in which they came."""
        others = self.temporary_house_bots
        here = (bot for bot in self._players.of_game(game) if bot.takes_matches)
        return tuple(bot.name for bot in here if bot.name not in others)

    def count(self, game: str) -> int:
        """How many `names` there are, in a time that does not grow with them."""
        others = (self._players.get(name) for name in self.temporary_house_bots)
        return self._players.count(game) - sum(
            bot is not None and bot.takes_matches and game in bot.games for bot in others
        )

    def saw(self, game: str, names: Collection[str]) -> None:
        """Note that these bots take part in a competition of a game."""
        self._players.see(game, names)

    def has_new(self, game: str) -> bool:
        """Whether one of the `names` was not among those that `saw` was given last."""
        return not self.temporary_house_bots.issuperset(self._players.unseen(game))

    def is_awaiting(self, game: str) -> bool:
        """Whether a bot that plays a game has lost its connection and may come back."""
        bots = self._players.of_game(game)
        return any(bot.connection is None and not bot.leaving for bot in bots)

    @property
    def temporary_house_bots(self) -> set[str]:
        """The names of people, and of house bots that are here for one competition or people."""
        names = {name for running in self._competitions for name in running.temporary_house_bots}
        return names.union(self._non_competing())

    # --- names ---

    @property
    def taken(self) -> set[str]:
        """The names of all bots that are here, start or take part in something, and of people."""
        return {*self._players, *self._others()}

    def is_taken(self, name: str) -> bool:
        """Whether one of the names that are `taken` looks like this one."""
        return self._players.like(name) is not None or alike(name) in map(alike, self._others())

    def _others(self) -> tuple[str, ...]:
        """The names that are taken besides those of connected bots."""
        playing = (
            name
            for running in self._competitions
            for name in (*running.plan.players, *running.submitted)
        )
        return (*self._supervisor, *playing, *self._non_competing())

    def keep_spellings(self, names: Iterable[str]) -> None:
        """Have names that have played keep their spelling as long as this arena runs."""
        for name in names:
            self._players.spellings.add(name)

    def spelled(self, name: str) -> str:
        """The spelling of the bot whose name looks like this one."""
        return self._players.spellings.of(name)

    def use_of(self, name: str) -> str | None:
        """What the bots of the owner `name` do here now, in words; None if none is here."""
        key = alike(name)
        for player in self._players.values():
            if alike(owner_of(player.name)) == key:
                if player.connection is None:
                    return f"{player.name} has lost its connection and may come back"
                return f"{player.name} is connected"
        for competition in self._competitions:
            for bot in (*competition.plan.players, *competition.submitted):
                is_out = bot in competition.ledger.book.removed
                if alike(owner_of(bot)) == key and not is_out:
                    return f"{bot} takes part in {competition.id}, which is not over"
        for other in (*self._supervisor, *self._non_competing()):
            if alike(owner_of(other)) == key:
                return f"{other} is here"
        return None
