"""Who may see what of a match: the only module that implements rule J8.

`seen` returns what a spectator, the owner of a seat or the instructor is shown. Hidden facts are
not removed from an event afterwards: a view is put together from what it may show. With captions,
every event has its words in `text`, and the event that ends a round its `gains`; both are made from
what that view shows of it. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from arena.games.names import owner_of
from arena.games.replay import CardsDealt, Event, MatchOver, SeatAnswered
from arena.games.rules import EVERYONE, AskSeat, TellSeat
from arena.records.captions import Captioner
from protocol.messages import Termination
from protocol.vocabulary import News
from protocol.watching import View

__all__ = [
    "LADDER_S",
    "OWN_MATCHES",
    "Viewer",
    "ViewerKind",
    "ending_for",
    "is_open_to",
    "seen",
    "sees_luck",
    "view_of",
]

LADDER_S = 86_400.0
"""How long after a match everybody may see all of it on a ladder, which never ends."""
OWN_MATCHES = 20
"""An owner sees a bot's luck early only over this many matches, or a multiple: the luck of a single
match would reveal the other seats' cards.
"""


class ViewerKind(StrEnum):
    """How much a viewer may see."""

    PUBLIC = "public"
    OWNER = "owner"
    INSTRUCTOR = "instructor"


class Viewer(msgspec.Struct, frozen=True):
    """Somebody who watches; `name` is that of the token, and "" for the public."""

    kind: ViewerKind = ViewerKind.PUBLIC
    name: str = ""


def view_of(players: Sequence[str], is_over: bool, viewer: Viewer) -> View:
    """How much of a match a viewer may see (J8).

    `is_over`: whether its competition is over, or the match itself outside of one.
    """
    if is_over or viewer.kind is ViewerKind.INSTRUCTOR:
        return View("all")
    if viewer.kind is ViewerKind.OWNER:
        own = tuple(seat for seat, name in enumerate(players) if owner_of(name) == viewer.name)
        if own:
            return View("seat", own)
    return View("public")


def sees_luck(is_over: bool, viewer: Viewer) -> bool:
    """Whether a viewer may see the luck of all bots, which is computed from the cards (J8).

    Others may see that of their own bots over `OWN_MATCHES`, and on a ladder after `LADDER_S`.
    """
    return is_over or viewer.kind is ViewerKind.INSTRUCTOR


def is_open_to(viewer: Viewer, bot: str, is_over: bool) -> bool:
    """Whether a viewer may see a bot's private results (J8); at the end everybody may.

    These are the evidence of its offences, its mistakes and the analysis of its play. Mistakes and
    analysis are computed from what its seat knew, so they reveal nothing to its owner, on a ladder,
    too. `is_over` is as for `view_of`.
    """
    if is_over or viewer.kind is ViewerKind.INSTRUCTOR:
        return True
    return viewer.kind is ViewerKind.OWNER and owner_of(bot) == viewer.name


def ending_for(ended: Termination, own: Collection[int]) -> Termination:
    """How a match ended, as the owner of these seats sees it: only the offender sees the text.

    The text of an offence may reveal the offender's cards.
    """
    if ended.is_offence and ended.seat not in own:
        return Termination(ended.kind, ended.seat)
    return ended


def seen(
    events: Sequence[Event], view: View, seats: int, captions: Captioner | None = None
) -> list[dict[str, Any]]:
    """What a view shows of some events in a match of `seats` seats, ready for JSON.

    Events that belong together must come in one call: news told to all seats one after another are
    one event to the public.
    """
    shown: list[dict[str, Any]] = []
    for at, event in enumerate(events):
        text = ""
        if type(event) is TellSeat:
            seat, news = event.seat, event.news
            if seat == EVERYONE or view.sees(seat, seats):
                heard_by = None if seat == EVERYONE else seat
                shown.append({"event": "told", "seat": heard_by, "news": _plain(news)})
                if captions is not None:
                    if (gains := captions.gains(news)) is not None:
                        shown[-1]["gains"] = gains
                    if not _is_known(news, captions, view, seats):
                        text = captions.told(heard_by, news)
            elif view.kind == "public" and (run := _told_to_all(events, at, seats)):
                shown.append({"event": "told", "seat": None, "news": _merged(run)})
                text = "" if captions is None else captions.told_each(run)
        elif type(event) is AskSeat:
            seat, question = event.seat, event.question
            is_seen = view.sees(seat, seats)
            asked = _plain(question) if is_seen else {"kind": question.kind}
            shown.append({"event": "asked", "seat": seat, "question": asked})
            if captions is not None and is_seen:
                text = captions.asked(seat, question)
        elif type(event) is SeatAnswered:
            shown.append(_answered(event, view, seats))
            if captions is not None and view.sees(event.seat, seats):
                text = captions.answered(event.seat, event.question, event.value)
        elif type(event) is CardsDealt:
            if view.kind == "all":
                shown.append({"event": "dealt", "deal": _plain(event.deal)})
        elif type(event) is MatchOver:
            shown.append({"event": "over", **_plain(_over(event, view))})
        if text:
            shown[-1]["text"] = text
    return shown


def _is_known(news: News, captions: Captioner, view: View, seats: int) -> bool:
    """Whether the news only repeat an answer that the view has seen."""
    seat = getattr(news, "seat", None)
    return isinstance(seat, int) and view.sees(seat, seats) and captions.repeats(news)


def _plain(what: object) -> Any:
    return msgspec.to_builtins(what)


def _told_to_all(events: Sequence[Event], at: int, seats: int) -> list[News]:
    """The news of one kind, from event `at` on, that all seats are told in turn; empty if none."""
    news: list[News] = []
    for seat, event in enumerate(events[at : at + seats]):
        if type(event) is not TellSeat or event.seat != seat:
            return []
        if news and type(event.news) is not type(news[0]):
            return []
        news.append(event.news)
    return news if len(news) == seats else []


def _merged(run: Sequence[News]) -> dict[str, Any]:
    """The fields that are the same in all seats' news; the others are null."""
    first, *others = map(_plain, run)
    for name, value in first.items():
        if any(other[name] != value for other in others):
            first[name] = None
    return dict(first)


def _answered(event: SeatAnswered, view: View, seats: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"event": "answered", "seat": event.seat}
    if view.sees(event.seat, seats):
        shown["value"] = msgspec.to_builtins(event.value)
    shown["took_ms"] = event.took_ms
    # Notes are for their author: a match of one seat is open to all, its notes are not.
    if event.note is not None and (view.kind == "all" or event.seat in view.seats):
        shown["note"] = event.note
    return shown


def _over(event: MatchOver, view: View) -> MatchOver:
    if view.kind == "all":
        return event
    return msgspec.structs.replace(event, termination=ending_for(event.termination, view.seats))
