"""How a game is written: as a generator that reads like its page of the rulebook.

It yields `AskSeat` when a seat must decide and `TellSeat` when a seat may know something. It is
sent legal answers only, and keeps the running result on the `Scoreboard`. `reply = yield
AskSeat(seat, question)` reads: "wait here for that seat's decision". Rules touch no clock, socket,
log or random number: decks come in as an iterator that never ends, offences are the match's
business (`arena/games/match.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from arena.games.analysis import Analysing, HabitMeter, Judging
from arena.games.shuffle import Stream
from protocol.entry_points import Package
from protocol.vocabulary import News, Question, Vocabulary

__all__ = [
    "EVERYONE",
    "NOBODY",
    "AskSeat",
    "Choice",
    "Game",
    "Luck",
    "LuckMeter",
    "LuckRound",
    "Measure",
    "Purse",
    "Rules",
    "Scoreboard",
    "Script",
    "TellSeat",
    "Trial",
    "Unit",
    "Variation",
]

EVERYONE = -1
"""The seat of a `TellSeat` that all seats hear."""

NOBODY = -2
"""The seat of a `TellSeat` that no seat hears: a deal, in a replay that may show it (J8)."""


class AskSeat(msgspec.Struct, frozen=True, gc=False):
    """The rules wait until `seat` gives a legal answer to `question`."""

    seat: int
    question: Question[Any]


class TellSeat(msgspec.Struct, frozen=True, gc=False):
    """`seat`, or `EVERYONE`, may now know `news`."""

    seat: int
    news: News


class Scoreboard:
    """The result as it stands, by seat; the rules write it, the match reads it.

    `scores` is what ranks (chips, games, points); some games have `points` beside it (G15).
    """

    __slots__ = ("points", "scores")

    def __init__(self, seats: int) -> None:
        self.scores = [0] * seats
        self.points = [0] * seats


Rules: TypeAlias = Generator[AskSeat | TellSeat, Any, None]
"""A match in progress; the generator returns at its end, with the result on its scoreboard."""


class Unit(msgspec.Struct, frozen=True):
    """The smallest thing that a match repeats under the same conditions; results are its samples.

    Attributes:
        name: the word for a unit: `hand`, `game`.
        setting: the setting that limits the number of units of a match.
        closes: the news that ends a unit.
        payoffs: reads from that news what the unit paid, by seat.
        block: how many consecutive units make one value of a sample. Units in a row depend on each
            other, as bots may adapt to what has been played.
        margins: reads from that news by how much each seat led at the end, where the payoffs do not
            say it; the units lost by most are judged first.
    """

    name: str
    setting: str
    closes: type[News]
    payoffs: Callable[[Any], Sequence[float]]
    block: int = 1
    margins: Callable[[Any], Sequence[float]] | None = None


class Measure(msgspec.Struct, frozen=True):
    """What a league ranks by: the mean over a bot's matches of some value (K3).

    Attributes:
        title: the name of the mean: `final bankroll`.
        value: computes a match's value from its settings and its score.
        is_share: whether the value is 1 or 0, so that the mean is a share of the matches.
    """

    title: str
    value: Callable[[Any, int], float]
    is_share: bool = False


class Purse(msgspec.Struct, frozen=True):
    """The chips that a player takes to the dealer, for `arena ruin`.

    Attributes:
        stake: the setting for the number of chips at first.
        length: the setting for the most rounds of a match.
        least: the fewest chips with which a round can be played.
        goal: the setting for the chips that end a match; bots are told it; None if there is none.
    """

    stake: str
    length: str
    least: int
    goal: str | None = None


class Trial(msgspec.Struct, frozen=True):
    """How many matches are played for some purpose, and the settings that differ.

    Attributes:
        settings: those that are not the defaults.
        matches: how many are played.
    """

    settings: Mapping[str, object] = {}
    matches: int = 1


class Variation(msgspec.Struct, frozen=True):
    """A match of `arena check` that makes a rare shape of `legal` come up.

    Attributes:
        settings: of the match, given the bot's seat.
        chooses: returns the legal answers from which the opponents choose at random; None for house
            bots as opponents.
        wanted: whether a first deal will do, given the bot's seat. The other seats' nonces are
            redrawn until one will; None accepts any deal.
    """

    settings: Callable[[int], Mapping[str, object]]
    chooses: Callable[[Sequence[Any]], Sequence[Any]] | None = lambda legal: legal
    wanted: Callable[[Any, int], bool] | None = None


class HiddenCards(msgspec.Struct, frozen=True):
    """Which cards of a deal are hidden, and until which news; for `arena check-game`.

    Attributes:
        cards: returns the cards of a deal that only this seat may see while a round lasts, until it
            has played; the seat number after the last is the dealer, or the stock. None if the
            rules do not say; then `arena check-game` finds less.
        until: the questions and news that show a seat a hidden card, such as a card handed on or a
            common card turned up. Nobody may know the card before.
    """

    cards: Callable[[Any, int], Sequence[Any]] | None = None
    until: tuple[type[Question[Any]] | type[News], ...] = ()


class Choice(msgspec.Struct, frozen=True):
    """A setting that a person at the page may choose.

    Attributes:
        setting: its name.
        label: its name on the page.
        least: the least value for people.
        most: the greatest: people do not play matches of a thousand rounds.
        is_offered: whether it is shown; the bounds hold in any case.
    """

    setting: str
    label: str
    least: int
    most: int
    is_offered: bool = True


class Script(Protocol):
    """A game's own wording of a match, line by line, instead of that of its vocabulary.

    Its methods get everything in order, and return the lines for it. A reader who may only know
    what one seat saw is not told of deals: `dealt` is not called then.
    """

    def dealt(self, deal: Any) -> Iterable[str]: ...

    def told(self, news: News) -> Iterable[str]: ...

    def asked(self, question: Question[Any]) -> Iterable[str]: ...

    def answered(self, question: Question[Any], answer: Any) -> Iterable[str]: ...

    def ended(self) -> Iterable[str]: ...


class LuckRound(msgspec.Struct, frozen=True, gc=False):
    """By seat, what a round paid, and how much of that is luck; both in the unit of `Luck`.

    The gain without luck is `gains[seat] - luck[seat]`.
    """

    gains: tuple[float, ...]
    luck: tuple[float, ...]


class LuckMeter(Protocol):
    """Measures what chance gave each seat of one match, compared with its average.

    At every chance event the luck is u(state after) minus the mean of u over all states that might
    have come. For any u and any bots its mean is 0, so the gain without luck is unbiased. A meter
    hears everything that happens in a match in order, all cards included. Subclasses override only
    the methods that they need.
    """

    rounds: list[LuckRound]
    """The rounds that are over."""

    def dealt(self, deal: Any) -> None:
        return

    def told(self, told: TellSeat) -> None:
        return

    def asked(self, asked: AskSeat) -> None:
        return

    def answered(self, asked: AskSeat, answer: Any) -> None:
        return


class Luck(msgspec.Struct, frozen=True):
    """How luck is measured in a game.

    Attributes:
        unit: of gains and luck: `chip`, or `ante` if they are counted in antes of any size.
        meter: makes a meter for a match with these settings.
        refuses: why luck cannot be measured with these settings; None if it can.
    """

    unit: str
    meter: Callable[[Any], LuckMeter]
    refuses: Callable[[Any], str | None] = lambda settings: None


_MEAN_SCORE = Measure("mean score", lambda settings, score: score)

# Rounds for a short match, for some minutes of a person's time, for a demonstration, for timing.
_SHORT, _FOR_PEOPLE, _DEMO, _BENCH = 6, 20, 100, 1000
# Matches per table of a game without a unit: all seatings of up to five bots, equally often (K1).
_CROSS = 120


class Game(msgspec.Struct, frozen=True, kw_only=True):
    """A game: its rules, and all that the rest of the program must know of it.

    `GAME` in `arena/games/<game>/rules.py` is an instance; `protocol/<game>.py` has its vocabulary.
    Functions take the settings first. Fields with a default may be left out.

    Attributes:
        vocabulary: its words, `VOCABULARY` of `protocol/<game>.py`.
        about: the aim of the game, in a few words.
        summary: the rules in a paragraph, for a person who sits down to play.
        rules: the generator.
        deals: yields decks from the portable stream (J6), without end.
        stacked: yields decks that somebody gives; checks every card and raises `BadDeck`.
        decisions: estimates the decisions in a match, of all seats together.
        rounds: returns settings for matches of at most the given rounds.
        short: settings for a match that even a slow bot ends within seconds.
        for_people: settings for a match that takes a person some minutes.
        choices: which of these settings a person may choose.
        variations: matches in which every shape of `legal` comes up.
        cross: what `arena cross` plays by default: many matches in a game without a unit.
        demo: what `arena demo` plays.
        bench: what benchmarks play.
        unit: what is sampled, if it is less than a match.
        is_count: whether scores count units won (G15); they are shown without a sign.
        points: the name of the points beside the scores, if there are any (G14).
        splits_by: the setting by which a match may be split into several, None if it may not (A9).
        meets_itself: whether each bot also plays against another instance of itself (A10).
        in_competitions: returns the settings that differ in competitions (B14, G15, K3).
        stake: returns what an offence against the dealer loses (J3); None for games between bots.
        purse: the chips of a player against the dealer.
        measure: what a league ranks by; the mean score by default.
        advancing: how many advance from a table of an elimination; None for half of the seats.
        survivors: returns the seats that advance, by the scores and the offender's seat, if any;
            None for the best `advancing` and all that tie with the last of them, and after an
            offence for all other seats (H11, H13).
        luck: how the luck of a match is measured; None if it is not.
        analysing: how bots are analysed; None if they are not.
        judging: how the decisions of a match are judged. If None, a small game for one or two seats
            from outside gets a general judge; other games are not judged.
        habits: makes a meter that counts what a bot does, for charts; None if there is none.
        script: its own wording of a match; None for the words of its vocabulary.
        hidden: which cards are hidden, from whom, and until when; for `arena check-game`.
        view: the module, beside the rules, that draws it on the page, with a style sheet of the
            same name if there is one; None for the general view.
        package: the package of a game from outside; filled in when the game is loaded.
    """

    vocabulary: Vocabulary
    about: str
    summary: str
    rules: Callable[[Any, Iterator[Any], Scoreboard], Rules]
    deals: Callable[[Any, Stream], Iterator[Any]]
    stacked: Callable[[Any, Iterable[Any]], Iterator[Any]]
    decisions: Callable[[Any], float]
    rounds: Callable[[int], Mapping[str, object]]
    short: Mapping[str, object] = {}
    for_people: Mapping[str, object] = {}
    choices: tuple[Choice, ...] = ()
    variations: tuple[Variation, ...] = ()
    cross: Trial = Trial()
    demo: Trial = Trial()
    bench: Trial = Trial()
    unit: Unit | None = None
    is_count: bool = False
    points: str | None = None
    splits_by: str | None = None
    meets_itself: bool = False
    in_competitions: Callable[[Any], Mapping[str, object]] = lambda settings: {}
    stake: Callable[[Any], int] | None = None
    purse: Purse | None = None
    measure: Measure = _MEAN_SCORE
    advancing: int | None = None
    survivors: Callable[[Sequence[int], int | None], tuple[int, ...]] | None = None
    luck: Luck | None = None
    analysing: Analysing | None = None
    judging: Judging | None = None
    habits: Callable[[], HabitMeter] | None = None
    script: Callable[[Any], Script] | None = None
    hidden: HiddenCards = HiddenCards()
    view: str | None = None
    package: Package | None = None

    def __post_init__(self) -> None:
        """Fill in fields that follow from `rounds` if they are not given."""
        for field, most in ("short", _SHORT), ("for_people", _FOR_PEOPLE):
            if not getattr(self, field):
                msgspec.structs.force_setattr(self, field, self.rounds(most))
        if self.cross == Trial() and self.unit is None:
            msgspec.structs.force_setattr(self, "cross", Trial(matches=_CROSS))
        for field, most in ("demo", _DEMO), ("bench", _BENCH):
            if getattr(self, field) == Trial():
                msgspec.structs.force_setattr(self, field, Trial(self.rounds(most)))

    @property
    def name(self) -> str:
        return self.vocabulary.name

    @property
    def seats(self) -> int:
        return self.vocabulary.seats
