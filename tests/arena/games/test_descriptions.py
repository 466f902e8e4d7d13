"""What games say of themselves, tried in random matches: words, shapes, settings, measures."""

from __future__ import annotations

import random
from importlib.metadata import EntryPoint
from types import ModuleType

import msgspec
import pytest

import arena.games.catalogue
from arena.authoring.playout import AnyLegal
from arena.games.blackjack.script import BlackjackScript
from arena.games.catalogue import GAMES, competition_settings, style_path
from arena.games.match import MatchState, drive
from arena.games.replay import Event, SeatAnswered, events_of
from arena.games.rules import EVERYONE, NOBODY, AskSeat, TellSeat, Variation
from arena.games.shuffle import seed_from_int
from arena.lab.in_process import play
from arena.records.luck import luck_of
from protocol.blackjack import BlackjackSettings
from protocol.codec import Encoding, encode, encode_all
from protocol.errors import BadGame, UsageError
from protocol.gin_rummy import Offer
from protocol.gin_words import melding
from protocol.high_low import RoundOver
from protocol.messages import Goodbye
from protocol.schema.definitions import _answer_type
from protocol.strategy import house_bots, house_modules
from protocol.vocabulary import News, Question, Vocabulary
from protocol.words import Told

NAMES = tuple("abcdefghij")


def told(words: Vocabulary, event: Event) -> list[str]:
    """All that can be said of an event."""
    match event:
        case TellSeat(seat, news):
            who = "all" if seat == EVERYONE else NAMES[seat]
            said = words.told_words(news)
            lines = said.lines(news, NAMES[: words.seats], who)
            return [*lines, f"round{said.opened(news, NAMES)}"]
        case SeatAnswered(question=asked, value=value):
            said_of = words.asked_words(asked)
            return [
                said_of.asked("ann", asked),
                said_of.answered(asked, value),
                said_of.choices(asked),
            ]
    return []


@pytest.mark.parametrize("name", GAMES)
def test_every_step_of_random_matches_has_words_shapes_and_payoffs(name: str) -> None:
    game = GAMES[name]
    words = game.vocabulary
    variations = game.variations or (Variation(lambda seat: game.rounds(20)),)
    found: set[str] = set()
    for number in range(60):
        variation = variations[number % len(variations)]
        settings = words.read_settings(variation.settings(number % game.seats))
        prefer = variation.chooses or (lambda legal: legal)
        match = MatchState(game, settings, seed=seed_from_int(number))
        drive(match, [AnyLegal(random.Random(number), prefer)] * game.seats)
        for event in events_of(match.result().record):
            assert all(told(words, event))
            if isinstance(event, AskSeat):
                found |= {shape.name for shape in words.legal_shapes if shape.is_of(event.question)}
            if isinstance(event, TellSeat) and type(event.news) is words.closes:
                assert len(words.payoffs(event.news)) == game.seats
            unit = game.unit
            if isinstance(event, TellSeat) and unit and type(event.news) is unit.closes:
                assert len(unit.payoffs(event.news)) == game.seats

    assert found


@pytest.mark.parametrize("name", GAMES)
def test_settings_measures_and_wanted_deals_are_as_they_say(name: str) -> None:
    game = GAMES[name]
    read = game.vocabulary.read_settings
    usual = competition_settings(game, {})
    assert isinstance(game.measure.value(usual, 3), int | float)
    assert isinstance(game.measure.value(read(None), 10**9), int | float)
    match = MatchState(game, read(game.short), seed=seed_from_int(1), tells_deals=True)
    [deal] = [tell.news for tell in match.news if tell.seat == NOBODY][:1]
    for variation in game.variations:
        if variation.wanted is not None:
            assert variation.wanted(deal, 0) in (True, False)
    if game.script is not None:
        assert list(game.script(read(None)).dealt(deal)) is not None


def test_values_in_words() -> None:
    class Mixed(News, frozen=True, tag="mixed"):
        nothing: int | None
        yes: bool
        paid: tuple[int, int]

    text = Told("{nothing} {yes} {paid}")

    [line] = text.lines(Mixed(None, True, (3, -3)), ("ann", "ben"), "all")
    assert line == "nothing yes ann +3, ben -3"


def test_what_a_question_or_script_does_not_know_is_nothing() -> None:
    offer = Offer("As", ("2s",))
    script = BlackjackScript(BlackjackSettings())

    assert offer.fault("steal") is None
    assert melding([["As", "Ac", "Ad"]]) == "melds As Ac Ad"
    assert list(script.told(RoundOver((None, None, None, None), None, (0,) * 4, (0,) * 4))) == []


def test_a_question_must_say_the_type_of_its_answers() -> None:
    class WithoutAnswer(Question, frozen=True, tag="no_answer"):  # type: ignore[type-arg]
        legal: tuple[int, ...] = (1,)

    with pytest.raises(UsageError, match="expected the type of the answers"):
        _answer_type(WithoutAnswer)


def test_a_view_has_the_style_sheet_beside_it_if_there_is_one() -> None:
    styles = [style_path(game) for game in GAMES.values()]

    assert any(styles)
    assert style_path(msgspec.structs.replace(GAMES["blackjack"], view=None)) is None


def test_modules_of_house_bots_and_frames_of_several_messages() -> None:
    assert [module.__name__ for module in house_modules("blackjack")] == ["bots.blackjack"]
    goodbye = encode(Goodbye(), Encoding.JSON)
    assert encode_all([Goodbye()], Encoding.JSON) == goodbye
    assert encode_all([Goodbye(), Goodbye()], Encoding.JSON) == b"[%b,%b]" % (goodbye, goodbye)


@pytest.mark.parametrize("name", GAMES)
def test_the_luck_of_every_game_is_measured_in_a_match_of_its_house_bots(name: str) -> None:
    game = GAMES[name]
    chosen = {"shuffle": "uniform"} if name == "blackjack" else {}
    settings = {**game.rounds(40), **chosen}
    bots = list(house_bots(name).values())
    record = play(name, [bots[0]() for _ in range(game.seats)], settings=settings, seed=4).record
    luck = luck_of(record)

    assert luck.rounds
    assert any(any(each.luck) for each in luck.rounds)


def test_a_description_without_a_vocabulary_is_refused() -> None:
    module = ModuleType("some.rules")
    module.GAME = msgspec.structs.replace(GAMES["ace_king_queen"], vocabulary=None)  # type: ignore[attr-defined]
    point = EntryPoint("ace_king_queen", "some.rules", "arena.games")

    with pytest.raises(BadGame, match="vocabulary: expected the `VOCABULARY` of the game"):
        arena.games.catalogue._read(point, module)
