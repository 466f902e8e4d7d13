"""What `arena new --lang other` writes: sections of the manual, for a language with no starter."""

from __future__ import annotations

from collections.abc import Callable

from arena.authoring.field_docs import kind_docs
from arena.authoring.starter import ADDRESS, ShellCommand, Starter, with_bot
from arena.games.rules import Game

__all__ = ["other_language"]

_SESSION = "The session in pseudocode"
_LINES = "Lines instead of a WebSocket"
_COMMAND = "COMMAND"  # only the author knows what starts the bot


def other_language(game: Game, name: str, section: Callable[[str], str]) -> Starter:
    """The game's page, the session in pseudocode and in lines, and the commands for such a bot.

    A game from outside has no page in our manual: it gets one from its description.

    Args:
        game: what the bot plays.
        name: of the bot.
        section: gives a section of the protocol's manual by its heading.
    """
    play = " ".join(["arena play", game.name, *with_bot(game, name, _COMMAND)])
    page = section(game.name) if game.package is None else _page(game)
    return Starter(
        {f"{game.name}.md": page, "lines.md": section(_LINES), "session.md": section(_SESSION)},
        (
            ShellCommand("try", play),
            ShellCommand("check", f"arena check -- {_COMMAND}"),
            ShellCommand("connect", f"ARENA_NAME={name} ARENA_URL={ADDRESS} {_COMMAND}"),
            ShellCommand("in lines", f"arena connect 'stdio: {_COMMAND}' --name {name}"),
        ),
    )


def _page(game: Game) -> str:
    """The rules in brief, and every question and news with its fields."""
    words = game.vocabulary
    lines = [f"# {words.title}", "", game.summary, "", f"Seats: {words.seats}."]
    for title, kinds in ("Questions", words.questions), ("News", words.news):
        lines += ["", f"## {title}"]
        for kind, cls in kinds.items():
            lines += ["", f"### `{kind}`", "", "```text", *kind_docs(kind, cls).notes, "```"]
    return "\n".join(lines) + "\n"
