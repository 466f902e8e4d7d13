"""Plays a match with strategy objects in this process; an exception is a crash of its seat."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any, TypeAlias

from arena.games.match import MatchState
from arena.games.rules import EVERYONE
from protocol.bot_folder import is_import, without_folder
from protocol.errors import IllegalAnswer, in_words, one_line
from protocol.messages import Ending
from protocol.strategy import Strategy, as_sent

__all__ = ["drive", "place_of"]

_Listener: TypeAlias = tuple[int, Callable[[Any], object]]  # a seat and its `hear`

LONGEST_PATH = 1000  # `one_line` cuts at the end, and the end of a path says the most


def drive(match: MatchState, strategies: Sequence[Strategy]) -> None:
    """Ask and tell until the match is over.

    Whatever a strategy raises, except Ctrl-C, is a crash of its seat and ends the match. The result
    of a match that is over stands: an exception at its last news only stops telling them (J2).
    """
    decides: list[Callable[[Any], object]] = []
    everyone: list[_Listener] = []
    for seat, strategy in enumerate(strategies):
        try:
            strategy.reset()
            decides.append(strategy.decide)
            everyone.append((seat, strategy.hear))
        except BaseException as error:
            return _crashed(match, seat, error)
    listeners = {EVERYONE: everyone, **{seat: [(seat, hear)] for seat, hear in everyone}}
    while True:
        if told := match.news:
            match.news = []
            for tell in told:
                news = tell.news
                for seat, hear in listeners[tell.seat]:
                    try:
                        hear(news)
                    except BaseException as error:
                        return _crashed(match, seat, error)
        asked = match.pending
        if asked is None:
            return None
        try:
            value = as_sent(decides[asked.seat](asked.question))
        except BaseException as error:
            return _crashed(match, asked.seat, error)
        try:
            match.answer(value)
        except IllegalAnswer as error:
            text = f"{error}; {asked.question.advice(value)}"
            return match.end(Ending.ILLEGAL, asked.seat, text)


def _crashed(match: MatchState, seat: int, error: BaseException) -> None:
    """End the match and tell the strategy's author what was raised, and where."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    where = place_of(sys.exc_info()[2])
    what = without_folder(in_words(error))
    match.end(Ending.CRASH, seat, f"seat {seat + 1} raised {what}{where}")


def _is_base(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("bots.")


def place_of(raised: TracebackType | None) -> str:
    """Where in the code that was called something was raised: ` at FILE:LINE`, or nothing.

    The first frame is the caller's, and nothing is said of an error of its own, or of the classes
    that a bot is built on.
    """
    _ours, *frames = walk_tb(raised)
    theirs = [at for at in frames if not (is_import(at[0]) or _is_base(at[0]))]
    if not theirs:
        return ""
    frame, line = theirs[-1]
    return one_line(f" at {frame.f_code.co_filename}:{line}", LONGEST_PATH)
