// @ts-check
// A recorded match, to be stepped through.

import { html, useEffect, useMemo, useReducer, useRef, useState } from "../lib/preact.js";
import { Failure } from "../components.js";
import { GAMES } from "../games/games.js";
import { href, stay } from "../route.js";
import { count, duration, number, termination, time } from "../format.js";
import { useMe } from "../login.js";
import { Controls, KeyHelp, Overview, STEP_MS } from "../table/controls.js";
import { marksOfRound, nextMark, stepOf } from "../table/marks.js";
import { unitOf } from "../table/games.js";
import { Dot } from "../table/seats.js";
import { CopyLink, Frame, LAST, Stage, faster, within } from "./match_parts.js";
import { MatchLuck } from "./luck.js";
import { Outcome } from "./match_outcome.js";
import { Mistakes, SaveRecord, seatsOf, useMistakes } from "./mistakes.js";
import { Verdict } from "./verdict.js";

const ADDRESS_MS = 300; // browsers allow only so many changes of the address

/**
 * @param {{id: string, record: import("../table/record.js").Record, route: import("../route.js").Route, wasLive?: boolean}} props
 *   wasLive: it has been watched up to its end
 */
export function Stepped({ id, record, route, wasLive = false }) {
  const { document, match, last } = record;
  /** @type {[{round: number, step: number, mark?: any}, any]} */
  const [at, setAt] = useState(() => (wasLive && !route.round ? { round: last, step: LAST } : { round: within(route.round ?? 1, last), step: route.step ?? 0 }));
  const [playing, setPlaying] = useState(false);
  const [, redraw] = useReducer((n) => n + 1, 0);
  const [speed, setSpeed] = useState(1);
  useEffect(() => record.want(at.round));
  const [chosen, setChosen] = useState(/** @type {number|null|undefined} */ (undefined));
  const me = useMe();
  const whose = seatsOf(document, me);
  const seat = chosen === undefined ? whose.own : chosen;
  const { judges } = GAMES[document.game] ?? {};
  const mistakes = useMistakes(id, judges ? seat : null);
  const { marks } = mistakes;
  const steps = match.steps(at.round);
  const end = (steps?.length ?? 1) - 1;
  // The step of a mark is known when its round is there.
  const sought = at.mark && steps ? stepOf(steps, at.mark.seat, at.mark.turn) : -1;
  const step = sought < 0 ? Math.min(at.step, end) : sought;
  const here = useMemo(() => marksOfRound(marks, at.round, steps, seat ?? 0), [marks, at.round, steps, seat]);
  const atEnd = at.round >= last && Boolean(steps) && step >= end;
  const to = (round, next) => setAt({ round: within(round, last), step: Math.max(0, next) });
  const forth = () => (!steps || atEnd ? undefined : step < end ? to(at.round, step + 1) : to(at.round + 1, 0));
  const stop = (act) => (...given) => {
    setPlaying(false);
    act(...given);
  };
  const toMark = stop((mark, of = seat) => {
    setChosen(of);
    setAt({ round: mark.round, step: 0, mark: { seat: of, turn: mark.turn } });
    // Whoever has scrolled down to the mistakes has to see the table again.
    const board = globalThis.document.querySelector(".board");
    if (board && board.getBoundingClientRect().bottom < innerHeight / 2) board.scrollIntoView();
  });
  const on = {
    first: stop(() => to(1, 0)),
    end: stop(() => to(last, LAST)),
    step: stop(forth),
    back: stop(() => (step > 0 ? to(at.round, step - 1) : at.round > 1 && to(at.round - 1, LAST))),
    previous: stop(() => (step > 0 || at.round === 1 ? to(at.round, 0) : to(at.round - 1, 0))),
    next: stop(() => at.round < last && to(at.round + 1, 0)),
    toRound: stop((round) => to(round, 0)),
    play: () => !(atEnd && !playing) && setPlaying(!playing),
    speed: setSpeed,
    faster: (by) => setSpeed(faster(speed, by)),
    ...(marks.length > 0 && { mistake: () => toMark(nextMark(marks, seat ?? 0, at.round, step, steps)) }),
  };

  useEffect(() => {
    if (!playing) return undefined;
    if (atEnd) return void setPlaying(false);
    // The end of a round stays a little longer.
    const timer = setTimeout(forth, ((step === end && end > 0 ? 2 : 1) * STEP_MS) / speed);
    return () => clearTimeout(timer);
  }, [record, playing, at.round, step, end, speed, Boolean(steps)]);
  // The address follows the moment shown, and the moment a changed address.
  useEffect(() => {
    if (playing) return undefined;
    // Not after the person has gone to another view.
    const timer = setTimeout(() => location.hash.startsWith(href("m", id)) && stay("m", id, at.round, step), ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [playing, at.round, step]);
  const first = useRef(true);
  useEffect(() => {
    // Also to the same moment as last time, as the view has moved on since.
    if (!first.current && route.round !== undefined) to(route.round, route.step ?? 0);
    first.current = false;
  }, [route]);

  const unit = unitOf(document.game);
  return html`<${Frame} scene=${document} state=${document.result.termination.kind === "completed" ? "over" : "offence"}
      side=${wasLive ? html`<span class="tip" role="status">The match is over: step through it.</span>` : null}>
    <${Outcome} id=${id} document=${document} seats=${judges ? whose.seats : []} chosen=${seat} marks=${marks} unit=${unit} onMark=${toMark} />
    <${Facts} document=${document} id=${id} unit=${unit} />
    ${record.error ? html`<${Failure} error=${record.error} retry=${() => record.again()} />` : null}
    <${Stage} game=${match.game} onFail=${(error) => (match.fall(error), redraw())} scene=${document} steps=${steps} step=${step} round=${at.round} onPick=${stop((n) => to(at.round, n))} marks=${here} />
    <${Controls} round=${at.round} last=${last} step=${step} steps=${end} playing=${playing} speed=${speed} atEnd=${atEnd}
        atStart=${at.round === 1 && step === 0} unit=${unit} on=${on}>
      <${CopyLink} link=${href("m", id, at.round, step)} />
      <${SaveRecord} id=${id} document=${document} />
      <${KeyHelp} unit=${unit} more=${on.mistake && [["M", "next mistake"]]} />
    <//>
    <${Overview} after=${document.points?.length === document.rounds.length ? document.points : document.rounds} ends=${endsOf(document)} round=${at.round} onJump=${on.toRound} marks=${marks} seat=${seat ?? 0} />
    ${judges && html`<${Mistakes} document=${document} me=${me} seat=${seat} read=${mistakes} onSeat=${setChosen} onMark=${toMark} unit=${unit} />`}
    <${MatchLuck} document=${document} of=${seat} />
    ${document.verdict ? html`<section class="panel"><h2>Verdict</h2><${Verdict} verdict=${document.verdict} competition=${document.competition} /></section>` : null}
  <//>`;
}

function Facts({ document, id, unit }) {
  const { result, players, started_at: from, finished_at: until } = document;
  const { termination: end, scores, points } = result;
  const who = end.seat == null ? null : players[end.seat];
  return html`<p class="facts">
    <span class="scores-now">final ${players.map((name, seat) => html`<span class="pair" title=${name}><${Dot} seat=${seat} /> <b>${number(scores[seat])}</b></span>`)}</span>
    ${points.some(Boolean) ? html`<span>points ${points.map((each) => number(each)).join(" – ")}</span>` : null}
    <span>${end.kind === "completed" ? termination(end.kind) : html`<b class="bad">${who ? html`<bdi>${who}</bdi>: ` : null}${end.text || termination(end.kind)}</b>`}</span>
    <span>${count(document.decisions, "decision")} in ${duration(until - from)}</span>
    <span>${time(until)}</span>
    ${document.worker ? html`<span>refereed by worker <bdi>${document.worker}</bdi></span>` : null}
    ${document.counts ? null : html`<span>does not count</span>`}
    <${Worst} document=${document} id=${id} unit=${unit} />
  </p>`;
}

/** Where each seat has lost most: what its author looks for. */
function Worst({ document: { players, rounds, points }, id, unit }) {
  const after = points.length ? points : rounds;
  const worst = useMemo(() => players.map((_, seat) => worstOf(after, seat, points.length > 0)), [after]);
  if (rounds.length < MANY || !worst.some(Boolean)) return null;
  return html`<span class="worst">largest loss ${worst.map((found, seat) =>
    found && html` <span class="pair"><${Dot} seat=${seat} /> <a href=${href("m", id, found.round, 0)} aria-label=${`${players[seat]}: ${unit} ${found.round}, ${found.lost}`}>${unit} ${number(found.round)}</a> ${number(found.lost)}</span>`)}</span>`;
}

/** After which rounds a game was won, where a match has several; else none. */
function endsOf({ game, rounds }) {
  if (!GAMES[game]?.is_count) return [];
  return rounds.flatMap((scores, at) => (at < rounds.length - 1 && String(scores) !== String(rounds[at - 1] ?? scores.map(() => 0)) ? [at + 1] : []));
}

const MANY = 3; // rounds: fewer are soon looked through

/**
 * The round that cost a seat most, or null if none cost anything, or if several did and all the same: then none stands out.
 * Points are only ever won, and those of the other seats are what is lost.
 */
function worstOf(after, seat, isPoints) {
  let found = null;
  const losses = [];
  const of = (all) => (!all ? 0 : isPoints ? all[seat] - all.reduce((sum, each) => sum + each) : all[seat]);
  for (let at = 0; at < after.length; at++) {
    const lost = of(after[at]) - of(after[at - 1]);
    if (lost < 0) losses.push(lost);
    if (lost < (found?.lost ?? 0)) found = { round: at + 1, lost };
  }
  return losses.length > 1 && losses.every((lost) => lost === losses[0]) ? null : found;
}
