"""What `arena new --lang other` writes: sections of the manual, for a language with no starter."""

from __future__ import annotations

from arena.authoring.starter import ADDRESS, ShellCommand, Starter
from arena.engine.rules import Game
from arena.manual.documents import documents, section
from protocol.strategy import house_bots

__all__ = ["other_language"]

_PROTOCOL = "protocol/"
_SESSION = "The session in pseudocode"
_COMMAND = "COMMAND"  # only the author knows what starts the bot


def other_language(game: Game, name: str) -> Starter:
    """The game's page, the session in pseudocode, and the commands for a bot of that name."""
    protocol = {
        path: document for path, document in documents().items() if path.startswith(_PROTOCOL)
    }
    rivals = list(house_bots(game.name))[: game.seats - 1]
    play = " ".join(["arena play", game.name, *rivals])
    return Starter(
        {
            f"{game.name}.md": section(protocol, game.name),
            "session.md": section(protocol, _SESSION),
        },
        (
            ShellCommand("try", f"{play} --bot '{name}={_COMMAND}'"),
            ShellCommand("check", f"arena check -- {_COMMAND}"),
            ShellCommand("connect", f"ARENA_NAME={name} ARENA_URL={ADDRESS} {_COMMAND}"),
        ),
    )
