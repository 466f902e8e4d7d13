// @ts-check
// A live match: followed as it is played, or looked back in.

import { html, useEffect, useReducer, useState } from "../lib/preact.js";
import { token } from "../api.js";
import { State } from "../components.js";
import { href } from "../route.js";
import { clockFace, count, duration, number } from "../format.js";
import { Controls, KeyHelp, STEP_MS } from "../table/controls.js";
import { unitOf } from "../table/games.js";
import { Dot } from "../table/seats.js";
import { CopyLink, Frame, LAST, Stage, faster } from "./match_parts.js";

const CLOCK_MS = 100;

/**
 * @param {{id: string, live: import("../table/live.js").Live, lost: boolean, ended?: boolean, wanted: number, moment?: number}} props
 *   ended: the match is gone, and its record is looked for; wanted: the round that the address names, or 0; moment: the step
 */
export function Watched({ id, live, lost, ended = false, wanted, moment = LAST }) {
  const { scene, match } = live;
  const isHere = wanted > 0 && match.has(wanted);
  const [at, setAt] = useState(isHere ? { round: wanted, step: moment } : { round: live.newest, step: LAST });
  const [following, setFollowing] = useState(!isHere);
  const [speed, setSpeed] = useState(2);
  const [, redraw] = useReducer((n) => n + 1, 0);
  const round = live.nearest(at.round);
  const [before, after] = [live.beside(round, -1), live.beside(round, 1)];
  const steps = match.steps(round);
  const end = (steps?.length ?? 1) - 1;
  const step = Math.min(at.step, end);
  const to = (round, step) => setAt({ round, step });
  const atEnd = round >= live.newest && step >= end;
  const stop = (act) => (...given) => {
    setFollowing(false);
    setAt({ round, step });
    act(...given);
  };
  const on = {
    first: stop(() => to(live.oldest, 0)),
    end: () => setFollowing(true),
    step: stop(() => (step < end ? to(round, step + 1) : after && to(after, 0))),
    back: stop(() => (step > 0 ? to(round, step - 1) : before && to(before, LAST))),
    previous: stop(() => to(step > 0 ? round : (before ?? round), 0)),
    next: stop(() => after && to(after, 0)),
    toRound: stop((number) => to(number, 0)),
    play: () => (following ? stop(() => {})() : setFollowing(true)),
    speed: setSpeed,
    faster: (by) => setSpeed(faster(speed, by)),
  };
  // Without the match or the arena the turn is not known.
  const isNow = round === live.newest && step >= end && !lost && !ended;
  const next = following ? live.next(round, step) : null;
  // Events of the present round are shown as they come, rounds that are over at the chosen speed.
  const isAtOnce = next !== null && next.round === round && !live.isComplete(round);
  const wait = next === null ? null : isAtOnce ? 0 : ((next.round !== round ? 2 : 1) * STEP_MS) / speed;
  useEffect(() => {
    if (wait === null) return undefined;
    // The newest state is read then: frames must not restart the timer.
    const timer = setTimeout(() => setAt((before) => live.next(round, step) ?? before), wait);
    return () => clearTimeout(timer);
  }, [live, round, step, wait]);
  useEffect(() => live.hold(round), [live, round]);
  const unit = unitOf(scene.game);
  const behind = live.newest - round;
  return html`<${Frame} scene=${scene} state=${ended ? "over" : "live"}>
    <p class="facts">
      <span role="status">${lost ? html`<${State} state="lost">connection lost, trying again<//>` : ended ? "the match is over; fetching its record…" : null}</span>
      <span>${count(live.decisions, "decision")}</span>
      ${live.skipped ? html`<span>${count(live.skipped, unit)} skipped: too fast to be shown</span>` : null}
      ${behind > 1 && following ? html`<span>now playing ${unit} ${number(live.newest)}</span>` : null}
      ${wanted && wanted < live.oldest ? html`<span>${unit} ${number(wanted)} can be seen when the match is over</span>` : null}
      <span class="scores-now">now ${scene.players.map((name, seat) => html`<span class="pair" title=${name}><${Dot} seat=${seat} /> <b>${number(live.scores[seat])}</b></span>`)}</span>
    </p>
    <${Stage} game=${match.game} onFail=${(error) => (match.fall(error), redraw())} scene=${scene} steps=${steps} step=${step} round=${round} onPick=${stop((n) => to(round, n))}
      turn=${isNow ? live.turn : null} clock=${isNow && live.turn ? html`<${Clock} turn=${live.turn} since=${live.turnAt} />` : null} />
    <${Controls} round=${round} first=${live.oldest} last=${live.newest} step=${step} steps=${end} playing=${following} speed=${speed} atEnd=${following || atEnd}
        atStart=${round === live.oldest && step === 0} unit=${unit} on=${on}>
      <button type="button" class=${`follow ${following ? "is" : ""}`} aria-pressed=${following} onClick=${on.play}>Watch live</button>
      <${CopyLink} link=${href("m", id, round, step)} />
      <${KeyHelp} unit=${unit} />
    <//>
  <//>`;
}

/** Whose turn it is, and how much time it has: what a decision takes beyond its own time comes out of the bank (J7). */
function Clock({ turn, since }) {
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(tick, CLOCK_MS);
    return () => clearInterval(timer);
  }, []);
  const waited = turn.waited_ms + performance.now() - since;
  const bank = Math.max(0, turn.bank_ms - Math.max(0, waited - turn.decision_ms));
  return html`<span role="timer" aria-live="off" class=${bank < turn.bank_ms / 4 ? "urgent" : ""}
    title=${`${duration(turn.decision_ms / 1000)} for a decision, then the bank`}>${clockFace(waited / 1000)} s · bank ${clockFace(bank / 1000)}</span>`;
}
