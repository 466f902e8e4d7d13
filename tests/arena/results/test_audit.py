"""The audit of competitions: each kind of flaw is found, and said of the right match."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arena.engine.match import MatchResult, Result
from arena.formats.formats import schedule_of
from arena.formats.schedule import Pairing, RankingPlace
from arena.formats.spec import Form, Plan, Settling
from arena.records.verify import OpenQuestion
from arena.results.audit import audit, remarks
from arena.storage.store import Act, CompetitionRow, CompetitionState, MatchRow
from arena.strength.settle import Goal
from protocol.messages import Ending, Limits, Termination, Verdict
from tests.support.sample_database import plan, play, play_out, verdict_of, void

replace = msgspec.structs.replace
REMOVAL = Act(competition="c-1", at=2.5, who="eva", what="remove", bot="ann", text="copied")
STOP = Act(competition="c-1", at=50.0, who="eva", what="stop", text="late")


class PlayedCompetition:
    """A competition that was played, to be damaged."""

    def __init__(self, of: Plan, offender_in: int | None = None) -> None:
        self.matches: list[MatchRow] = []
        self.verdicts: list[Verdict] = []
        self.acts: list[Act] = []
        self.state = CompetitionState.FINISHED
        self.finished_at: float | None = 99.0
        self.plan = of
        self.ranking = play_out(of, self.add, offender_in)

    def add(self, pairing: Pairing, result: MatchResult, **more: Any) -> None:
        number = len(self.matches) + 1
        fields: dict[str, Any] = {"id": f"m-{number}", "counts": True, **more}
        played = MatchRow(
            number=number,
            competition="c-1",
            pairing=pairing.number,
            game=self.plan.game,
            players=pairing.players,
            result=Result(result.scores, result.points, result.termination),
            started_at=float(number),
            finished_at=number + 0.5,
            digest="",
            **fields,
        )
        self.matches.append(played)
        if result.termination.is_offence:
            self.verdicts.append(verdict_of(played.id, pairing.players, result))

    def change(self, number: int, **fields: Any) -> None:
        """Change fields of the n-th match."""
        self.matches[number - 1] = replace(self.matches[number - 1], **fields)

    def take_back(self, number: int) -> None:
        """The instructor makes the n-th match void."""
        self.change(number, counts=False)
        name = self.matches[number - 1].id
        self.acts.append(Act(competition="c-1", at=60.0, who="eva", what="void", match=name))

    def goes_on(self, state: CompetitionState) -> None:
        """Put it in a state without a ranking; a stop has its act."""
        self.state, self.ranking, self.finished_at = state, (), None
        if state is CompetitionState.STOPPED:
            self.finished_at = STOP.at
            self.acts.append(STOP)

    @property
    def competition(self) -> CompetitionRow:
        return CompetitionRow(
            id="c-1",
            plan=self.plan,
            state=self.state,
            revision=0,
            started_at=0.0,
            finished_at=self.finished_at,
            ranking=self.ranking,
        )

    def said(self, **options: Any) -> list[tuple[str | None, str]]:
        """The flaws that the audit finds, each with its match."""
        found = audit(self.competition, self.matches, self.verdicts, self.acts, **options)
        return [(flaw.match, flaw.text) for flaw in found]

    def remarked(self) -> list[str]:
        return list(remarks(self.competition, self.matches, self.acts))


def ladder(offender_in: int | None = None) -> PlayedCompetition:
    """A ladder with the matches of a round robin."""
    played = PlayedCompetition(plan("ace_king_queen"), offender_in)
    played.plan = replace(played.plan, form=Form.LADDER)
    return played


@pytest.mark.parametrize("game", ["ace_king_queen", "gin_rummy", "high_low", "three_card_poker"])
@pytest.mark.parametrize("offender_in", [None, 2])
def test_a_competition_as_it_was_played_fits(game: str, offender_in: int | None) -> None:
    assert PlayedCompetition(plan(game), offender_in).said() == []


def test_a_larger_elimination_is_drawn_again() -> None:
    players = tuple(f"p{number}" for number in range(1, 20))

    played = PlayedCompetition(plan("high_low", players=players), offender_in=3)

    assert len(played.matches) > 5
    assert played.said() == []


def test_void_matches_and_those_taken_back_count_for_nothing() -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    first = next(schedule_of(played.plan))[0]
    played.add(first, void("ace_king_queen"), counts=False)
    played.add(first, play("ace_king_queen", 9))
    played.take_back(5)

    assert played.said() == []
    assert [match.counts for match in played.matches] == [True] * 3 + [False] * 2


@pytest.mark.parametrize("form", [Form.LADDER, Form.ROUND_ROBIN])
@pytest.mark.parametrize("state", CompetitionState)
def test_a_match_that_does_not_count_and_that_nobody_has_taken_back(
    state: CompetitionState, form: Form
) -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    played.plan = replace(played.plan, form=form)
    if state is not CompetitionState.FINISHED:
        played.goes_on(state)
    played.take_back(1)
    played.change(2, counts=False)

    said = played.said()

    assert ("m-2", "it does not count, and nobody has taken it back") in said
    assert not any(match == "m-1" for match, _ in said)


def test_a_match_that_was_taken_back_and_counts() -> None:
    played = PlayedCompetition(plan("gin_rummy"))
    played.take_back(1)
    played.change(1, counts=True)

    assert played.said() == [("m-1", "it was taken back, and is counted all the same")]


def test_a_void_match_that_is_counted() -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    played.change(2, result=void("ace_king_queen"))

    assert ("m-2", "it is void, and is counted all the same") in played.said()


def test_a_pairing_that_is_counted_twice() -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    first = next(schedule_of(played.plan))[0]
    played.add(first, play("ace_king_queen", 9))

    assert played.said() == [("m-4", "pairing 1 is counted in match m-1 already")]


def test_a_pairing_that_has_no_match() -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    del played.matches[1]

    [(match, text)] = played.said()

    assert match is None
    assert text.startswith("pairing 2, ")
    assert text.endswith(", has no match")


def test_so_many_that_only_some_are_named() -> None:
    played = PlayedCompetition(plan("three_card_poker", matches=3))
    played.matches.clear()

    *named, (_, rest) = played.said()

    assert len(named) == 5
    assert rest == "4 pairings more have no match"


@pytest.mark.parametrize(
    "state", [CompetitionState.RUNNING, CompetitionState.PAUSED, CompetitionState.STOPPED]
)
@pytest.mark.parametrize("game", ["ace_king_queen", "high_low"])
def test_nothing_is_missing_before_the_end(game: str, state: CompetitionState) -> None:
    played = PlayedCompetition(plan(game))
    played.goes_on(state)
    del played.matches[-1]

    assert played.said() == []


@pytest.mark.parametrize("game", ["ace_king_queen", "high_low", "three_card_poker"])
def test_K5_nothing_is_missing_of_who_was_not_there(game: str) -> None:
    played = PlayedCompetition(replace(plan(game), not_there=("zoe", "yan")))

    assert played.said() == []


@pytest.mark.parametrize("game", ["high_low", "gin_rummy"])
def test_a_plan_of_a_game_of_ours_names_no_package(game: str) -> None:
    played = PlayedCompetition(plan(game))
    played.plan = replace(played.plan, package="x 1")

    assert played.said() == [
        (
            None,
            'its plan is wrong: it names the package "x 1", expected none: '
            f"{game} is a game of ours",
        )
    ]


def test_K5_who_takes_part_was_there() -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    played.plan = replace(played.plan, not_there=("zoe", played.plan.players[0]))

    name = played.plan.players[0]
    assert played.said() == [(None, f"{name} takes part, and is listed as not there")]


def test_a_competition_that_nobody_has_stopped() -> None:
    played = PlayedCompetition(plan("high_low"))
    played.goes_on(CompetitionState.STOPPED)
    played.acts.clear()

    assert played.said() == [(None, "it is stopped, and nobody has stopped it")]


@pytest.mark.parametrize(
    ("state", "finished_at", "said"),
    [
        (CompetitionState.FINISHED, None, "it is finished, and nothing says when it ended"),
        (CompetitionState.STOPPED, None, "it is stopped, and nothing says when it ended"),
        (CompetitionState.RUNNING, 99.0, "it is running, and has the time of an end"),
        (CompetitionState.PAUSED, 99.0, "it is paused, and has the time of an end"),
    ],
)
def test_an_end_that_its_state_does_not_know(
    state: CompetitionState, finished_at: float | None, said: str
) -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    if state is not CompetitionState.FINISHED:
        played.goes_on(state)
    played.finished_at = finished_at

    assert played.said() == [(None, said)]


def test_a_ranking_where_there_can_be_none() -> None:
    played = PlayedCompetition(plan("high_low"))
    ranking = played.ranking
    played.goes_on(CompetitionState.STOPPED)
    played.ranking = ranking
    other = ladder()
    other.ranking = (RankingPlace(rank=1, names=("ann",), stage=1),)

    [(_, stopped)] = played.said()
    [(_, of_ladder)] = other.said()

    assert stopped.startswith("it is stopped, its ranking says 1. ")
    assert of_ladder == "it is a ladder, its ranking says 1. ann"


def test_a_match_that_the_schedule_does_not_ask_for() -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    played.add(Pairing(17, ("ann", "ben")), play("ace_king_queen", 9))

    assert played.said() == [("m-4", "the schedule asks for no pairing 17")]


def test_a_match_in_the_wrong_seats() -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    one, other = played.matches[0].players
    played.change(1, players=(other, one))

    assert played.said() == [
        ("m-1", f"it is {other} v {one}, the schedule asks for {one} v {other}")
    ]


def test_a_bot_need_not_meet_itself() -> None:
    played = PlayedCompetition(plan("ace_king_queen", with_itself=True))
    played.matches = [match for match in played.matches if len(set(match.players)) == 2]

    assert played.said() == []


def test_an_offender_that_plays_on() -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    offence = play("ace_king_queen", 9, offender=0)
    out = played.matches[0].players[0]
    played.change(1, result=offence)
    played.verdicts = [verdict_of("m-1", played.matches[0].players, offence)]

    after = [match.id for match in played.matches[1:] if out in match.players]

    assert after
    assert played.said() == [(match, f"{out} was out since match m-1") for match in after]


def test_a_removed_bot_that_plays_on() -> None:
    played = PlayedCompetition(plan("three_card_poker", matches=2))
    played.acts = [REMOVAL]

    assert played.said() == [("m-4", "ann had been removed before")]


def test_a_removed_bot_misses_no_match() -> None:
    played = PlayedCompetition(plan("three_card_poker", matches=2))
    played.acts = [REMOVAL]
    del played.matches[3]

    assert played.said() == []


def test_a_removed_bot_of_an_elimination_is_out_at_its_table() -> None:
    of = plan("high_low")
    played = PlayedCompetition(of)
    final = played.matches[-1]
    seat = final.players.index("ann") if "ann" in final.players else 0
    bot = final.players[seat]
    removed = Result((0, 0, 0, 0), (0, 0, 0, 0), Termination(Ending.REMOVED, seat, "copied"))
    played.change(len(played.matches), result=removed)
    played.acts = [replace(REMOVAL, bot=bot, at=final.started_at - 0.1)]
    said = played.said()

    assert (final.id, f"{bot} is out by removed, no verdict says so") in said
    assert not any("had been removed" in text for _, text in said)


def test_two_removed_bots_at_one_table_of_an_elimination() -> None:
    """One is out before a card is dealt; the other comes to the next table, and is out there."""
    played = PlayedCompetition(plan("high_low"))
    first = played.matches[0]
    removed = Result((0, 0, 0, 0), (0, 0, 0, 0), Termination(Ending.REMOVED, 0, "copied"))
    played.change(1, result=removed)
    played.acts = [replace(REMOVAL, bot=bot, at=0.5) for bot in first.players[:2]]

    def told(**options: Any) -> bool:
        said = (first.id, f"{first.players[1]} had been removed before")
        return said in played.said(**options)

    assert told()
    assert not told(undealt={first.id})


def test_an_offence_without_its_verdict() -> None:
    played = PlayedCompetition(plan("ace_king_queen"), offender_in=2)
    bot = played.matches[1].players[0]
    missed = "m-2", f"{bot} is out by illegal, no verdict says so"
    not_so = "a verdict says {} is out by {}, the match does not"

    [verdict] = played.verdicts
    cases: list[tuple[dict[str, Any], tuple[str, str]]] = [
        ({"bot": "zoe"}, ("m-2", not_so.format("zoe", "illegal"))),
        ({"kind": Ending.CRASH}, ("m-2", not_so.format(bot, "crash"))),
        ({"match": "m-1"}, ("m-1", not_so.format(bot, "illegal"))),
    ]
    for fields, other in cases:
        played.verdicts = [replace(verdict, **fields)]

        assert played.said() == [missed, other]

    played.verdicts = []

    assert played.said() == [missed]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"seat": 1}, "its verdict has another seat"),
        ({"text": "it cheated"}, "its verdict has another text"),
        ({"seat": 1, "game": "go"}, "its verdict has another seat and another game"),
        ({"limits": Limits(decision_ms=1)}, "its verdict has wrong limits"),
    ],
)
def test_a_verdict_that_says_otherwise_than_its_match(fields: dict[str, Any], said: str) -> None:
    played = PlayedCompetition(plan("ace_king_queen"), offender_in=2)
    played.verdicts = [replace(played.verdicts[0], **fields)]

    assert played.said() == [("m-2", said)]


def test_a_verdict_that_is_written_down_twice() -> None:
    played = PlayedCompetition(plan("ace_king_queen"), offender_in=2)
    played.verdicts *= 2

    [verdict, _] = played.verdicts
    assert played.said() == [("m-2", f"it has 2 verdicts on {verdict.bot}")]


def test_a_table_to_which_two_did_not_come() -> None:
    played = PlayedCompetition(plan("high_low"), offender_in=1)
    first, [verdict] = played.matches[0], played.verdicts
    also = replace(verdict, bot=first.players[2], seat=2, kind=Ending.ABSENT, text="late")
    missed = f"{also.bot} is out by illegal, no verdict says so"
    played.change(1, result=replace(first.result, also_out=(2,)))

    def said(*verdicts: Verdict) -> list[str]:
        played.verdicts = list(verdicts)
        return [text for match, text in played.said() if match == "m-1"]

    assert said(verdict, also) == []
    assert said(verdict) == [missed]
    assert said(verdict, replace(also, seat=1)) == ["its verdict has another seat"]
    assert said(verdict, also, also) == [f"it has 2 verdicts on {also.bot}"]


def test_a_verdict_on_a_match_that_is_not_there() -> None:
    played = PlayedCompetition(plan("ace_king_queen"), offender_in=2)
    played.verdicts.append(replace(played.verdicts[0], bot="cem", match="m-9"))

    assert played.said() == [(None, "a verdict on cem is about match m-9, which is not there")]


def test_a_row_without_the_nul_that_its_verdict_has() -> None:
    """PostgreSQL's texts hold none."""
    played = PlayedCompetition(plan("ace_king_queen"), offender_in=2)
    ended = played.matches[1].result.termination
    told = replace(played.matches[1].result, termination=replace(ended, text="a�b"))
    played.change(2, result=told)
    played.verdicts = [replace(played.verdicts[0], text="a\0b")]

    assert played.said() == []


def test_evidence_that_the_record_does_not_bear_out() -> None:
    played = PlayedCompetition(plan("ace_king_queen"), offender_in=2)
    [verdict] = played.verdicts
    assert verdict.asked is not None, "it gave an illegal answer"
    assert verdict.legal is not None, "there was something to answer"
    asked = OpenQuestion(verdict.seat, verdict.asked, verdict.legal)
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, []),
        ({"asked": "{}"}, ["its verdict has wrong asked"]),
        ({"asked": None, "legal": None}, ["its verdict has wrong asked and wrong legal"]),
        ({"legal": "fold"}, ["its verdict has wrong legal"]),
        ({"got": "'bet'"}, ["its verdict has wrong got"]),
        ({"got": None}, ["its verdict has wrong got"]),
    ]
    for fields, said in cases:
        played.verdicts = [replace(verdict, **fields)]

        assert [text for _, text in played.said(asked={"m-2": asked})] == said
        assert played.said() == []  # where the record says nothing
    played.verdicts = [verdict]

    for none in (None, replace(asked, seat=1)):
        [(match, text)] = played.said(asked={"m-2": none})

        assert (match, text) == ("m-2", "its verdict has wrong asked and wrong legal")


def test_a_forfeit_has_a_verdict_on_which_nothing_was_asked() -> None:
    played = PlayedCompetition(plan("ace_king_queen"), offender_in=3)
    text = "did not come within 60,000 ms"
    absent = Termination(Ending.ABSENT, 0, text)
    played.change(3, result=Result((0, 0), (0, 0), absent))
    verdict = replace(played.verdicts[0], kind=Ending.ABSENT, text=text, asked=None, legal=None)
    played.verdicts = [replace(verdict, got=None)]

    assert played.said(undealt={"m-3"}, asked={"m-3": None}) == []
    del played.matches[2]
    assert (
        None,
        f"a verdict on {verdict.bot} is about match m-3, which is not there",
    ) in played.said()


def test_a_ranking_that_the_matches_do_not_make() -> None:
    played = PlayedCompetition(plan("high_low"))
    first, *rest = played.ranking
    played.ranking = (replace(first, names=("zoe",)), *rest)

    [(match, text)] = played.said()

    assert match is None
    assert text == f"its ranking says 1. zoe, the matches make 1. {first.names[0]}"


def test_of_two_rankings_the_first_difference_is_told() -> None:
    made = PlayedCompetition(plan("high_low")).ranking
    *most, last = made
    names = " ".join(last.names)
    deeper = replace(last, stage=last.stage + 1)
    wrong = {
        (*most, replace(last, names=("zoe",))): (
            f"says {last.rank}. zoe, the matches make {last.rank}. {names}"
        ),
        (*most, deeper): (
            f"says {last.rank}. {names} in stage {deeper.stage}, "
            f"the matches make {last.rank}. {names} in stage {last.stage}"
        ),
        (*most,): f"says nobody more, the matches make {last.rank}. {names}",
        (): f"says nobody more, the matches make 1. {made[0].names[0]}",
    }
    for ranking, text in wrong.items():
        played = PlayedCompetition(plan("high_low"))
        played.ranking = ranking

        assert played.said() == [(None, f"its ranking {text}")]


def test_the_scores_of_the_final_are_those_of_its_match() -> None:
    played = PlayedCompetition(plan("high_low"))
    first, *rest = played.ranking
    assert first.score is not None

    played.ranking = (replace(first, score=first.score + 1), *rest)
    [(_, text)] = played.said()
    assert text.startswith(f"its ranking says 1. {first.names[0]} in stage ")
    assert text.endswith(f" with {first.score:+,}")


def test_tables_that_were_drawn_from_another_seed() -> None:
    played = PlayedCompetition(plan("high_low"))
    played.plan = replace(played.plan, seed="18" * 16)

    assert any("the schedule asks for" in text for _, text in played.said())


def test_a_table_of_an_elimination_that_was_not_played() -> None:
    players = tuple(f"p{number}" for number in range(1, 10))
    played = PlayedCompetition(plan("high_low", players=players))
    del played.matches[0]

    said = played.said()

    assert said[-1][1].startswith("pairing 1, ")
    # What later stages would ask for, nobody knows.
    assert len([text for _, text in said if "asks for no pairing" in text]) > 0


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"seed": "zz"}, "expected the seed of an elimination in hex, got 'zz'"),
        ({"house": ()}, "expected 3 house bots for free chairs in the final, got 0"),
        ({"players": ("ann", "ann")}, "expected every bot once, got 'ann' twice"),
    ],
)
def test_a_plan_that_cannot_be_played(fields: dict[str, Any], why: str) -> None:
    played = PlayedCompetition(plan("high_low"))
    played.plan = replace(played.plan, **fields)

    assert (None, f"its schedule cannot be run again: {why}") in played.said()


def test_a_ladder_has_no_schedule_and_an_offender_may_come_back() -> None:
    played = ladder(offender_in=1)
    last = played.matches[-1].pairing
    pairing = Pairing(last + 1, played.matches[0].players)
    played.add(pairing, play("ace_king_queen", 9))

    assert played.said() == []


def test_a_ladder_as_it_was_played_has_no_remarks() -> None:
    played = ladder()
    played.acts = [REMOVAL]

    assert played.remarked() == []
    assert PlayedCompetition(plan("ace_king_queen")).remarked() == []


def test_a_ladder_that_is_not_in_order() -> None:
    played = ladder()
    first, second, third = played.matches
    played.matches = [first, third, second]

    [remark] = played.remarked()

    assert remark.startswith("match m-2 stands after one that ended later, 1 in all")
    assert played.said() == []


def test_a_gap_in_a_ladder_that_has_ended() -> None:
    played = ladder()
    del played.matches[1]

    [remark] = played.remarked()

    assert remark.startswith("1 of its pairings have no match, the first is 2: ")
    played.goes_on(CompetitionState.RUNNING)
    assert played.remarked() == []  # it may be being played


def test_a_removal_after_the_end() -> None:
    played = PlayedCompetition(plan("ace_king_queen"))
    played.acts = [replace(REMOVAL, at=100.0)]

    assert played.said() == []
    assert played.remarked() == ["ann was removed after its end: none of its matches counts"]


@pytest.mark.parametrize("game", ["ace_king_queen", "three_card_poker", "high_low"])
@pytest.mark.parametrize("change", [{"players": ()}, {"players": ("zoe",)}, {"pairing": -5}])
def test_seats_that_no_pairing_has_are_told(game: str, change: dict[str, Any]) -> None:
    played = PlayedCompetition(plan(game))
    played.change(1, **change)

    assert played.said()


@pytest.mark.parametrize("seat", [9, -3])
def test_an_offender_that_has_no_seat_is_told(seat: int) -> None:
    played = PlayedCompetition(plan("high_low"))
    played.change(1, result=Result((), (), Termination(Ending.CPU, seat)))

    assert played.said()


def forgiving(forgive: int, *, events: tuple[str, ...]) -> PlayedCompetition:
    """A league of ann and ben, four matches each; ann's first ones ended by these events."""
    of = plan("three_card_poker", players=("ann", "ben"), matches=4, forgive=forgive)
    played = PlayedCompetition(of)
    mine = [match for match in played.matches if match.players == ("ann",)]
    text = "did not come back"
    for match, event in zip(mine, events, strict=False):
        ended = Termination(Ending.DISCONNECT, 0, text)
        result = Result(match.result.scores, match.result.points, ended)
        played.change(match.number, result=result)
        played.verdicts.append(
            Verdict(
                kind=Ending.DISCONNECT,
                match=match.id,
                game=match.game,
                bot="ann",
                seat=0,
                text=text,
                bank_ms=0,
                limits=of.limits,
                event=event,
            )
        )
    return played


def test_J3_who_is_forgiven_plays_on() -> None:
    assert forgiving(1, events=("a", "a")).said() == []
    assert forgiving(2, events=("a", "b")).said() == []


def test_J3_who_plays_on_after_one_event_more_than_is_forgiven() -> None:
    for played in (forgiving(0, events=("a",)), forgiving(1, events=("a", "b"))):
        texts = [text for _, text in played.said()]
        assert texts
        assert all(text.startswith("ann was out since match m-") for text in texts)


def test_J3_a_verdict_about_another_event_than_its_record_says() -> None:
    played = forgiving(2, events=("a", "b"))
    first, second = (verdict.match for verdict in played.verdicts)
    sealed = {first: ("a",), second: ("b",)}
    assert played.said(events=sealed) == []

    played.verdicts[1] = replace(played.verdicts[1], event="a")

    said = 'its verdict is about the event "a", its record says "b"'
    assert played.said(events=sealed) == [(second, said)]


# --- a competition that plays until it is settled (K6) ---


def settling() -> Plan:
    settle = Settling(goal=Goal.PAIRS, level=2.0, most=40)
    return plan("ace_king_queen", matches=10, settle=settle)


def swapped(match: MatchRow) -> MatchRow:
    """The match as if the other bot had won it."""
    result = match.result
    return replace(match, result=replace(result, scores=result.scores[::-1]))


def test_K6_blocks_as_they_were_played_fit() -> None:
    played = PlayedCompetition(settling())

    assert played.said() == []
    assert len({match.pairing for match in played.matches}) > 30


def test_K6_with_an_offender_the_blocks_fit_too() -> None:
    assert PlayedCompetition(settling(), 40).said() == []


def test_K6_a_match_that_is_in_no_block_is_found() -> None:
    """A settled pairing plays on: somebody has added a match of it."""
    played = PlayedCompetition(settling())
    last = played.matches[-1]
    played.matches.append(
        replace(last, id="m-forged", number=last.number + 1, pairing=last.pairing + 1)
    )

    assert played.said() == [("m-forged", f"the schedule asks for no pairing {last.pairing + 1}")]


def test_K6_results_that_draw_other_blocks_are_found() -> None:
    """All that ann won are ben's now: the two would have been settled, and have played on."""
    played = PlayedCompetition(settling())
    played.matches = [
        swapped(match)
        if match.players[:2] in (("ann", "ben"), ("ben", "ann"))
        and (match.result.winner is not None)
        and match.players[match.result.winner] == "ben"
        else match
        for match in played.matches
    ]
    said = played.said()

    assert said
    assert all("the schedule asks for" in text or "has no match" in text for _, text in said)


def test_K6_matches_that_are_gone_are_missed_once_it_is_over() -> None:
    played = PlayedCompetition(settling())
    gone = played.matches.pop(0)

    assert (
        None,
        f"pairing 1, {gone.players[0]} v {gone.players[1]}, has no match",
    ) in played.said()
