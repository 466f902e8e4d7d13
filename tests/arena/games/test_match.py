"""One match in progress: what an answer does, what an offence does, what the record keeps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, MatchState, Record, drive
from arena.games.replay import replay
from arena.games.rules import EVERYONE, AskSeat, TellSeat
from arena.games.statistics import UnitSums
from bots.ace_king_queen import Honest
from bots.strategy import choose
from protocol.ace_king_queen import HandOver, Open
from protocol.errors import BadDeck, IllegalAnswer
from protocol.messages import Ending, Termination
from protocol.vocabulary import News, Question
from tests.support.sample_database import from_outside
from tests.support.small_games import UnitSettings, tell, unit_game

SEED = bytes(32)

SHORT = {name: game.rounds(10) for name, game in GAMES.items()}
GAMES_BY_NAME = pytest.mark.parametrize("game", GAMES)


def deal(*decks: str, hands: int | None = None, **options: Any) -> MatchState:
    """A match of Ace-King-Queen with these decks."""
    game = GAMES["ace_king_queen"]
    read = game.vocabulary.read_settings({"hands": hands or len(decks)})
    return MatchState(game, read, decks=decks, **options)


def draw(game: str, **options: Any) -> MatchState:
    """A short match of any game with cards from the stream."""
    read = GAMES[game].vocabulary.read_settings(SHORT[game])
    return MatchState(GAMES[game], read, seed=SEED, **options)


def finish(match: MatchState, seed: int = 1) -> MatchState:
    """Play on at random."""
    rng = random.Random(seed)
    while match.pending is not None:
        match.answer(choose(match.pending.question.choices, rng))
    return match


# ---- Playing


def test_what_is_told_waits_to_be_taken_once() -> None:
    match = deal("AK", "KQ")
    match.answer("check")

    (told,) = match.take_news()
    assert isinstance(told, TellSeat)
    assert isinstance(told.news, HandOver)
    assert match.take_news() == []


def test_nothing_is_dealt_before_the_start() -> None:
    match = deal("AK", start=False)

    assert match.pending is None
    match.start()
    assert match.pending == AskSeat(0, Open(1, "A"))


def test_a_match_that_never_started_has_a_result_too() -> None:
    match = deal("AK", start=False)
    match.end(Ending.ABSENT, 1, "was not ready")

    result = match.result()
    assert result.scores == (0, 0)
    assert result.record.answers == ()
    assert result.record.decks == ()


# ---- J2, J3: offences


def test_J2_only_the_first_offence_ends_a_match() -> None:
    match = deal("AK")
    match.end(Ending.TIMEOUT, 0, "first")
    match.end(Ending.CRASH, 1, "second")

    assert match.result().termination == Termination(Ending.TIMEOUT, 0, "first")


def test_J2_an_offence_after_the_end_does_not_count() -> None:
    match = deal("AK")
    match.answer("check")
    match.end(Ending.CRASH, 0, "too late")

    assert match.result().termination == Termination(Ending.COMPLETED)


@pytest.mark.parametrize("game", ["three_card_poker", "blackjack"])
def test_J5_a_void_match_against_the_dealer_costs_nothing(game: str) -> None:
    match = draw(game)
    match.end(Ending.VOID, None, "why")

    assert match.result().scores == (0,)


@pytest.mark.parametrize(
    ("scores", "termination", "winner"),
    [
        ((2, -2), Termination(Ending.COMPLETED), 0),
        ((-2, 2), Termination(Ending.COMPLETED), 1),
        ((0, 0), Termination(Ending.COMPLETED), None),
        ((2, -2), Termination(Ending.ILLEGAL, 0), 1),
        ((2, -2), Termination(Ending.ILLEGAL, 1), 0),
        ((2, -2), Termination(Ending.VOID), None),
        ((7,), Termination(Ending.COMPLETED), None),
        ((1, 2, 3, -6), Termination(Ending.COMPLETED), None),
    ],
)
def test_J3_in_a_match_of_two_the_other_seat_wins_by_an_offence(
    scores: tuple[int, ...], termination: Termination, winner: int | None
) -> None:
    record = finish(deal("AK")).result().record

    assert MatchResult(scores, scores, termination, record=record).winner == winner


# ---- Decks


def test_a_match_whose_rules_have_raised_asks_nothing_more() -> None:
    match = deal("AK", "AA")
    with pytest.raises(BadDeck):
        match.answer("check")

    assert match.pending is None
    assert match.termination is None


def test_decks_may_come_without_end() -> None:
    game = GAMES["ace_king_queen"]
    read = game.vocabulary.read_settings({"hands": 3})
    match = finish(MatchState(game, read, decks=itertools.repeat("AK")))

    assert match.result().record.decks == (("A", "K"),) * 3


# ---- The record


@GAMES_BY_NAME
def test_only_a_record_of_a_game_from_outside_names_its_package(game: str) -> None:
    ours = finish(draw(game, nonces=("a",) * GAMES[game].seats)).result().record
    with from_outside(game):
        outside = finish(draw(game, nonces=("a",) * GAMES[game].seats)).result().record
        again = replay(Record.from_json(outside.to_json())).record
        assert again.to_json() == outside.to_json()

    assert outside.package == "leduc 1.0"
    assert b"package" not in ours.to_json()
    assert outside == msgspec.structs.replace(ours, package="leduc 1.0")


def test_only_a_record_where_submissions_are_taken_has_versions() -> None:
    match = finish(draw("ace_king_queen", versions=("v3", "connected")))
    record = match.result().record
    without = finish(draw("ace_king_queen")).result().record

    assert record.versions == ("v3", "connected")
    assert Record.from_json(record.to_json()) == record
    assert replay(record).record == record
    assert b"versions" not in without.to_json()


def test_a_record_of_before_that_names_a_worker_keeps_its_bytes() -> None:
    without = finish(draw("ace_king_queen")).result().record
    record = msgspec.structs.replace(without, worker="north")

    assert Record.from_json(record.to_json()) == record
    assert replay(record).record.to_json() == record.to_json()
    assert b"worker" not in without.to_json()


@pytest.mark.parametrize("ending", [Ending.CRASH, Ending.VOID, Ending.ABSENT])
def test_an_offence_replays_as_it_was_recorded(ending: Ending) -> None:
    match = deal("AK", "AK")
    match.answer("check")
    match.end(ending, None if ending is Ending.VOID else 1, "why")
    result = match.result()

    assert replay(result.record) == result


def test_a_match_that_never_started_replays_to_its_offence() -> None:
    match = draw("gin_rummy", start=False)
    match.end(Ending.ABSENT, 1, "was not ready")

    assert replay(match.result().record) == match.result()


def test_a_record_keeps_settings_decks_answers_and_notes() -> None:
    match = deal("AK", "QK")
    match.answer("bet", "I have the ace")
    match.answer("fold")
    match.answer("check", "")
    record = match.result().record

    assert record.game == "ace_king_queen"
    assert record.settings == {"hands": 2}
    assert record.seed is None
    assert record.decks == (("A", "K"), ("Q", "K"))
    assert record.answers == ("bet", "fold", "check")
    assert record.notes == ((0, "I have the ace"), (2, ""))
    assert record.scores == (0, 0)
    assert replay(record).record == record


def test_a_record_with_a_seed_needs_no_decks() -> None:
    record = finish(draw("ace_king_queen", nonces=("a", "b"))).result().record

    assert record.seed == SEED.hex()
    assert record.nonces == ("a", "b")
    assert record.decks is None


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"\xff", b'{"game":"akq"}', b"[" * 100])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        Record.from_json(data)


def forged(**changes: object) -> Record:
    """A record of two hands in which something is not as it was played."""
    match = deal("AK", "QK")
    for value in ("bet", "fold", "check"):
        match.answer(value)
    return msgspec.structs.replace(match.result().record, **changes)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"answers": ("bet", "fold")}, "says completed, but has only 2 answers"),
        ({"answers": ()}, "says completed, but has only 0 answers"),
        ({"answers": ("bet", "fold", "check", "bet")}, "answer 4 .* after the end"),
        ({"answers": ("bet", "raise", "check")}, 'seat 2 answered "raise"'),
        ({"answers": ("bet", True, "check")}, "seat 2 answered true"),
    ],
)
def test_a_record_whose_answers_do_not_fit_is_refused(
    changes: dict[str, object], text: str
) -> None:
    with pytest.raises(IllegalAnswer, match=text):
        replay(forged(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"game": "chess"},
        {"settings": {"hands": True}},
        {"settings": {"cards": 3}},
        {"decks": None},
        {"seed": "00"},
        {"decks": None, "seed": "zz"},
        {"decks": ("AK",)},
        {"decks": ("AK", "AA")},
        {"decks": ("AK", 5)},
    ],
)
def test_a_record_that_cannot_be_dealt_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        replay(forged(**changes))


def test_a_forged_result_does_not_survive_a_replay() -> None:
    record = forged(scores=(100, -100), points=(1, 1))

    assert replay(record).scores == (0, 0)
    assert replay(record).record != record


# ---- The past, for a bot that has forgotten it


class SeatMemory:
    """What one seat has been asked, with what it had heard before and what it answered."""

    def __init__(self) -> None:
        self.questions: list[tuple[object, tuple[News, ...], object]] = []
        self.heard: list[News] = []


def watched(match: MatchState, seed: int, steps: int) -> list[SeatMemory]:
    """Play so many answers at random, and write down what every seat knows of them."""
    memories = [SeatMemory() for _ in range(match.game.seats)]
    rng = random.Random(seed)
    while True:
        for told in match.take_news():
            for seat, memory in enumerate(memories):
                if told.seat in (seat, EVERYONE):
                    memory.heard.append(told.news)
        if match.pending is None or len(match.answers) == steps:
            return memories
        asked, memory = match.pending, memories[match.pending.seat]
        value = choose(asked.question.choices, rng)
        memory.questions.append((asked.question, tuple(memory.heard), value))
        memory.heard = []
        match.answer(value)


@GAMES_BY_NAME
@settings(max_examples=25)
@given(seed=some.binary(min_size=32, max_size=32), rng=some.integers(), data=some.data())
def test_the_past_of_a_seat_is_what_it_was_asked_has_heard_and_answered(
    game: str, seed: bytes, rng: int, data: some.DataObject
) -> None:
    read = GAMES[game].vocabulary.read_settings(SHORT[game])
    nonces = tuple(f"nonce {seat}" for seat in range(GAMES[game].seats))
    match = MatchState(GAMES[game], read, seed=seed, nonces=nonces)
    memories = watched(match, rng, data.draw(some.integers(0, 80)))

    for seat, memory in enumerate(memories):
        assert list(match.history_for(seat)) == memory.questions


@GAMES_BY_NAME
def test_the_past_can_be_told_while_the_match_goes_on(game: str) -> None:
    match = draw(game)
    memories = watched(match, 1, 8)
    told = [match.history_for(seat) for seat in range(GAMES[game].seats)]
    first = [next(past, None) for past in told]
    pending, answers, scores = match.pending, list(match.answers), match.scores

    assert (match.pending, match.answers, match.scores) == (pending, answers, scores)
    assert match.news == []

    finish(match)

    rest = [
        ([] if one is None else [one]) + list(past) for one, past in zip(first, told, strict=True)
    ]
    assert rest == [memory.questions for memory in memories]


@pytest.mark.parametrize("game", ["gin_rummy", "high_low"])
def test_J8_no_seats_past_has_what_only_others_were_told(game: str) -> None:
    match, rng = draw(game), random.Random(5)
    told: list[TellSeat] = []
    while match.pending is not None:
        told += match.take_news()
        match.answer(choose(match.pending.question.choices, rng))
    told += match.take_news()

    for seat in range(GAMES[game].seats):
        mine = [tell.news for tell in told if tell.seat in (seat, EVERYONE)]
        secret = [tell.news for tell in told if tell.news not in mine]
        heard = [told for _, news, _ in match.history_for(seat) for told in news]
        assert secret
        assert heard
        assert heard == mine[: len(heard)]
        assert not any(news in secret for news in heard)


def test_a_match_that_was_not_dealt_yet_has_a_past_without_questions() -> None:
    match = draw("gin_rummy")

    assert list(match.history_for(0)) == list(match.history_for(1)) == []


def test_a_match_with_stacked_decks_is_not_told_again() -> None:
    with pytest.raises(AssertionError, match="only matches over a network"):
        list(deal("AK").history_for(0))


# ---- The units of a match


def drawn(game: str, **settings: Any) -> MatchState:
    read = GAMES[game].vocabulary.read_settings(settings)
    return finish(MatchState(GAMES[game], read, seed=SEED))


def test_the_games_of_a_gin_match_are_added_up_while_it_is_played() -> None:
    result = drawn("gin_rummy", games=3).result()

    assert result.units == UnitSums(sum(result.scores), result.scores, result.scores)
    assert result.units.count > 0


def test_the_hands_of_ace_king_queen_are_added_up_in_blocks_of_fifty() -> None:
    units = drawn("ace_king_queen", hands=120).result().units

    assert units is not None
    assert units.count == 2
    assert units.sums[0] == -units.sums[1]
    assert units.squares[0] == units.squares[1] > 0
    assert drawn("ace_king_queen", hands=49).result().units is None


def test_a_game_whose_match_is_one_unit_adds_nothing_up() -> None:
    assert drawn("high_low").result().units is None


def test_a_unit_that_is_told_each_seat_in_turn_counts_once() -> None:
    game = GAMES["ace_king_queen"]

    def rules(*arguments: Any) -> Any:
        steps, answer = game.rules(*arguments), None
        with suppress(StopIteration):
            while True:
                step = steps.send(answer)
                if isinstance(step, TellSeat) and isinstance(step.news, HandOver):
                    yield TellSeat(0, step.news)
                    answer = yield TellSeat(1, step.news)
                else:
                    answer = yield step

    match = MatchState(
        msgspec.structs.replace(game, rules=rules),
        game.vocabulary.read_settings({"hands": 100}),
        seed=SEED,
    )

    assert finish(match).result().units == drawn("ace_king_queen", hands=100).result().units


def test_the_repr_of_a_result_is_a_line_without_the_record() -> None:
    record = finish(deal("AK")).result().record
    ended = Termination(Ending.CRASH, 0, "seat 1 raised " + "x" * 500)
    broken = MatchResult((0, 0), (0, 0), ended, record=record)
    whole = MatchResult((3, -3), (0, 0), Termination(Ending.COMPLETED), record=record)

    assert repr(whole) == f"MatchResult({record.game}, scores 3 -3, completed)"
    assert repr(broken).startswith(f"MatchResult({record.game}, scores 0 0, crash: seat 1 raised")
    assert len(repr(broken)) < 200


# ---- Driving strategies


class Raising(Honest):
    """Raises in one of its methods."""

    def __init__(self, where: str) -> None:
        self.where = where

    def _raise_in(self, method: str) -> None:
        if method == self.where:
            raise KeyError(method)

    def reset(self) -> None:
        self._raise_in("reset")
        super().reset()

    def decide(self, question: Question[object]) -> object:
        self._raise_in("decide")
        return super().decide(question)

    def hear(self, news: News) -> None:
        self._raise_in("hear")
        super().hear(news)


@pytest.mark.parametrize("where", ["reset", "decide", "hear"])
def test_J2_whatever_a_strategy_raises_is_a_crash_of_its_seat(where: str) -> None:
    game = GAMES["ace_king_queen"]
    match = MatchState(game, game.vocabulary.read_settings({"hands": 4}), seed=b"seed")
    drive(match, (Honest(), Raising(where)))

    ended = match.result().termination
    assert (ended.kind, ended.seat) == (Ending.CRASH, 1)
    assert ended.text.startswith(f"seat 2 raised KeyError: '{where}' at ")
    assert "test_match.py" in ended.text


def test_nothing_is_said_of_where_but_in_the_code_of_its_author() -> None:
    bot = Honest()
    bot.decide = 5  # type: ignore[assignment, method-assign]
    match = deal("AK")
    drive(match, (bot, Honest()))

    ended = match.result().termination
    assert (ended.seat, ended.text) == (0, "seat 1 raised TypeError: 'int' object is not callable")


def test_ctrl_c_is_no_crash() -> None:
    class PressesCtrlC(Honest):
        def hear(self, news: News) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(deal("AK"), (PressesCtrlC(), Honest()))


def test_J3_out_are_the_offender_and_who_was_not_here_either() -> None:
    match = deal("AK")
    match.end(Ending.ABSENT, 1, "why")
    result = match.result()

    assert result.out == (1,)
    assert msgspec.structs.replace(result, also_out=(0,)).out == (1, 0)
    assert finish(deal("AK")).result().out == ()


def test_a_match_in_which_nobody_is_asked_is_over_at_once_with_its_units() -> None:
    def silent(number: int, deal: Any) -> Generator[AskSeat | TellSeat, Any, tuple[int, int]]:
        yield tell("nothing to decide")
        return number, -number

    result = MatchState(unit_game(silent), UnitSettings(3), seed=SEED).result()

    assert result.scores == (6, -6)
    assert result.units is not None
    assert (result.units.count, result.units.sums) == (3, (6, -6))
