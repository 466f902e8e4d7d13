// @ts-check
// What steps a match: buttons, the round to jump to, the speed, and the keys for all of them.

import { html, useMemo, useState } from "../lib/preact.js";
import { number } from "../format.js";
import { Key, useKeys } from "./moves.js";

export const SPEEDS = [0.5, 1, 2, 4, 8, 16];
export const STEP_MS = 900; // from step to step at speed 1: time to read a line

const ICONS = {
  first: "M4 4h3v16H4ZM20 4v16L8 12Z",
  back: "M17 4v16L6 12Z",
  play: "M6 3.5v17L20 12Z",
  pause: "M6 4h4v16H6ZM14 4h4v16h-4Z",
  step: "M7 4v16l11-8Z",
  last: "M17 4h3v16h-3ZM4 4v16l12-8Z",
  previous: "M11 4v16L2 12ZM21 4v16l-9-8Z",
  next: "M13 4v16l9-8ZM3 4v16l9-8Z",
};

function Act({ icon, title, keyName, onClick, disabled = false, look = "" }) {
  return html`<button type="button" class=${`act ${look}`} title=${`${title} (${keyName})`} aria-label=${title} disabled=${disabled} onClick=${onClick}>
    <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${ICONS[icon]} /></svg></button>`;
}

/**
 * @param {{round: number, last: number, first?: number, step: number, steps: number, playing: boolean, speed: number, atEnd: boolean, atStart: boolean,
 *   unit: string, on: Record<string, any>, children?: any}} props
 *   on: what to do: first, back, step, end, previous, next, toRound(n), play, faster(by), speed(n); mistake, where there are marks
 */
export function Controls({ round, last, first = 1, step, steps, playing, speed, atEnd, atStart, unit, on, children }) {
  useKeys({
    ArrowRight: on.step, ArrowLeft: on.back, Home: on.first, End: on.end, " ": on.play,
    n: on.next, p: on.previous, "+": () => on.faster(1), "-": () => on.faster(-1), ...(on.mistake && { m: on.mistake }),
  });
  return html`<section class="controls" aria-label="Step through the match">
    <div class="reach"><div class="acts">
      <${Act} icon="first" title="First" keyName="Home" onClick=${on.first} disabled=${atStart} />
      <${Act} icon="previous" title=${`Previous ${unit}`} keyName="P" onClick=${on.previous} disabled=${round <= first && step === 0} />
      <${Act} icon="back" title="Back" keyName="←" onClick=${on.back} disabled=${atStart} />
      <${Act} icon=${playing ? "pause" : "play"} title=${playing ? "Pause" : "Play"} keyName="space" look="main" onClick=${on.play} disabled=${atEnd && !playing} />
      <${Act} icon="step" title="Step" keyName="→" onClick=${on.step} disabled=${atEnd} />
      <${Act} icon="next" title=${`Next ${unit}`} keyName="N" onClick=${on.next} disabled=${round >= last} />
      <${Act} icon="last" title="Last" keyName="End" onClick=${on.end} disabled=${atEnd} />
      ${on.mistake && html`<button type="button" class="act" title="Next mistake (M)" aria-label="Next mistake" onClick=${on.mistake}><b aria-hidden="true">??</b></button>`}
    </div>
    <${Jump} round=${round} first=${first} last=${last} unit=${unit} onJump=${on.toRound} /></div>
    <div class="more"><span class="where">step <b>${step}</b> of ${steps}</span>
    <label class="speed">Speed <select value=${String(speed)} onChange=${(event) => on.speed(Number(event.target.value))}>
      ${SPEEDS.map((each) => html`<option value=${String(each)} selected=${each === speed}>${each}×</option>`)}
    </select></label>
    ${children}</div>
  </section>`;
}

/** The round to jump to, as a field and as a slider. */
function Jump({ round, first, last, unit, onJump }) {
  // What is being typed, or null: a live match goes on meanwhile.
  const [typed, setTyped] = useState(/** @type {string|null} */ (null));
  const jump = () => {
    if (typed === null) return;
    setTyped(null);
    const wanted = /^\d+$/.test(typed.trim()) ? Math.min(last, Math.max(first, Number(typed))) : round;
    if (wanted !== round) onJump(wanted);
  };
  const submit = (event) => {
    event.preventDefault();
    jump();
  };
  return html`<form class="jump" onSubmit=${submit}>
    <label><span>${unit}</span> <input type="text" inputmode="numeric" size=${Math.max(3, String(last).length)} value=${typed ?? String(round)} aria-label=${`Go to ${unit}`}
      onInput=${(event) => setTyped(event.target.value)} onBlur=${jump} onFocus=${(event) => event.target.select()} /></label>
    <span class="of">of ${number(last)}</span>
    <input type="range" min=${first} max=${Math.max(first, last)} value=${round} aria-label=${unit} aria-valuetext=${`${unit} ${round} of ${last}`}
      onInput=${(event) => onJump(Number(event.target.value))} />
  </form>`;
}

/** @param {{unit: string, more?: [string, string][]}} props  more: keys with what they do */
export function KeyHelp({ unit, more = [] }) {
  const keys = [["←", "back"], ["→", "step"], ["P", `previous ${unit}`], ["N", `next ${unit}`], ["Home", "first"], ["End", "last"], ["space", "play or pause"], ["+ −", "speed"], ...more];
  return html`<details class="keys"><summary>? Keys</summary>
    <p>${keys.map(([key, what]) => html`<span><${Key}>${key}<//> ${what}</span>`)}</p></details>`;
}

/**
 * The scores of all rounds at a glance; a click goes there. It says nothing that the figures do not say, so it is hidden from screen readers.
 * @param {{after: number[][], round: number, onJump: (round: number) => void, marks?: import("./marks.js").Mark[], seat?: number, ends?: number[]}} props
 *   after: the scores at the end of each round; marks: the mistakes of the seat, as dots; ends: the rounds that ended a game
 */
export function Overview({ after, round, onJump, marks = [], seat = 0, ends = [] }) {
  const count = after.length;
  // A long match has a hundred thousand rounds, and this is drawn with every step.
  const curves = useMemo(() => curvesOf(after), [after]);
  const dots = useMemo(() => curves && [1, 2, 3].map((grade) => dotsOf(marks.filter((mark) => mark.grade === grade), after, seat, curves.y)), [curves, marks, seat]);
  if (!curves) return null;
  const { low, high, zero, lines } = curves;
  const here = (1000 * round) / count;
  const pick = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    onJump(Math.min(count, Math.max(1, Math.ceil((count * (event.clientX - box.left)) / box.width))));
  };
  return html`<div class="overview" aria-hidden="true" title="the scores, round by round: click to go there">
    <span class="high">${number(high)}</span><span class="low">${number(low)}</span>
    <svg viewBox="0 0 1000 100" preserveAspectRatio="none" onClick=${pick}>
      <line class="zero" x1="0" x2="1000" y1=${zero} y2=${zero} />
      ${ends.map((end) => html`<line class="ends" x1=${(1000 * end) / count} x2=${(1000 * end) / count} y1="0" y2="100" />`)}
      ${lines.map((line, seat) => html`<path class=${`line-${seat + 1}`} d=${line} />`)}
      ${dots?.map((d, at) => d && html`<path class=${`specks grade-${at + 1}`} d=${d} />`)}
      <line class="here" x1=${here} x2=${here} y1="0" y2="100" />
    </svg>
  </div>`;
}

const COLUMNS = 500; // of the overview: more cannot be told apart

/** A line for each seat, in a box of 1000 × 100; null if there is nothing to be seen in them. @param {number[][]} after */
function curvesOf(after) {
  let low = 0;
  let high = 0;
  for (const scores of after) for (const score of scores) [low, high] = [Math.min(low, score), Math.max(high, score)];
  const count = after.length;
  if (count < 2 || low === high) return null;
  const y = (score) => 96 - (92 * (score - low)) / (high - low);
  const stride = Math.ceil(count / COLUMNS);
  const line = (_, seat) => {
    let path = `M0 ${y(0)}`;
    for (let at = stride - 1; at < count + stride - 1; at += stride) {
      const number = Math.min(at, count - 1);
      path += `L${((1000 * (number + 1)) / count).toFixed(1)} ${y(after[number][seat]).toFixed(1)}`;
    }
    return path;
  };
  return { low, high, y, zero: y(0), lines: after[0].map(line) };
}

/** A dot at each round with a mistake, as lines without length; of those on one spot only one. */
function dotsOf(marks, after, seat, y) {
  const at = (round) => `M${((1000 * round) / after.length).toFixed(0)} ${y(after[round - 1][seat]).toFixed(0)}h0`;
  return [...new Set(marks.filter(({ round }) => round <= after.length).map(({ round }) => at(round)))].join("");
}
