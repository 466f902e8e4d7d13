// The table of a person who plays: the events step by step, the clock, the moves, and the result.

import { html, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "../lib/preact.js";
import { fetchGame, rulesOf } from "../table/games.js";
import { load, save } from "../storage.js";
import { Ask } from "./instructor_ask.js";
import { Key, useKeys } from "../table/moves.js";
import { endOfMatch, isAfter } from "../table/steps.js";
import { Empty, Loading, Page } from "../components.js";
import { href } from "../route.js";
import { clockFace, list, signed, termination, title } from "../format.js";

const PACE = "arena.pace"; // the key in the storage
const PACES = { calm: 900, brisk: 350, "at once": 0 }; // ms between two events
const HOLD_MS = 2500; // after a round, without "wait for me"
const URGENT_MS = 15_000;
const TICK_MS = 200;
const LINES = 40; // lines of what happened

/** @param {{chair: import("./play_chair.js").Chair, onLeave: () => void, onAgain: () => void, onHere: () => void}} props */
export function AtTable({ chair, onLeave, onAgain, onHere }) {
  const [game, setGame] = useState(null);
  const [isAsked, ask] = useState(false);
  const [failed, setFailed] = useState(false);
  const name = chair.table.game;
  useEffect(() => {
    fetchGame(name).then(setGame, () => setFailed(true));
  }, [name]);
  const heading = { title: title(name), label: `Playing ${title(name)}` };
  if (failed) return html`<${Page} ...${heading}><${Empty} title="The table could not be fetched." text="Load the page again; your seat stays for a while." /><//>`;
  if (!game) return html`<${Page} ...${heading}><${Loading} what="the table" /><//>`;
  const leave = chair.isDone
    ? html`<button type="button" onClick=${onLeave}>Another game</button>`
    : html`<button type="button" onClick=${() => ask(true)}>Stand up…</button>`;
  const lost = chair.table.players.length > 1 ? "The match ends here, and you have lost it." : "The match ends here, and the whole stake is lost.";
  return html`<${Page} ...${heading} side=${leave}>
    <${Played} key=${chair.table.match} chair=${chair} game=${game} onAgain=${onAgain} onHere=${onHere} />
    ${isAsked && !chair.isDone && html`<${Ask} title="Stand up?" text=${lost} yes="Stand up" no="Play on" onYes=${onLeave} onEnd=${() => ask(false)} />`}
  <//>`;
}

function Played({ chair, game, onAgain, onHere }) {
  const { players, seat: me, settings } = chair.table;
  const view = useMemo(() => ({ kind: "seat", seats: [me] }), []);
  const [pace, setPace] = useState(() => (load(PACE) in PACES ? load(PACE) : "brisk"));
  useLayoutEffect(() => save(PACE, pace), [pace]); // also if the page is left at once
  const [waits, setWaits] = useState(true);
  const replay = useReplay(chair, game, { settings, players, view }, PACES[pace], waits);
  const isMine = replay.isUpToDate && chair.question !== null && chair.phase === "playing";
  const table = useRef(null);
  useFocusKept(table, isMine || replay.isHeld);
  const clock = isMine && html`<${Clock} chair=${chair} />`;
  return html`<div class="play" ref=${table}>
    <div class="at">
      <${game.Table} state=${replay.state} players=${players} view=${view} me=${me} turn=${isMine ? { seat: me } : null} clock=${clock || null} />
      <div class="turn" role="group" aria-label="Your turn" tabindex="-1">
        ${chair.refusal && html`<p class="failure" role="alert">${chair.refusal}</p>`}
        ${chair.phase === "failed" && html`<p class="failure" role="alert">${chair.text}</p>`}
        ${chair.phase === "elsewhere" &&
        html`<p class="empty" role="status"><span>You play this match in another tab now.</span> <button type="button" onClick=${onHere}>Play on here</button></p>`}
        ${chair.phase === "lost" && html`<p class="failure" role="alert">The connection is lost; your clock runs on. Trying again…</p>`}
        ${replay.isHeld
          ? html`<${GoOn} onGo=${replay.go} isLast=${replay.isLast} />`
          : isMine
            ? html`<${game.Moves} key=${chair.asked.message.ask} question=${chair.question} state=${replay.state} me=${me} onAnswer=${(value) => chair.answer(value)} />`
            : chair.over && replay.isUpToDate
              ? html`<${Ended} chair=${chair} onAgain=${onAgain} />`
              : html`<${game.Moves} question=${null} state=${replay.state} me=${me} disabled=${true} />
                  <p class="others">${chair.phase === "playing" ? waitingFor(players, me) : ""}</p>`}
      </div>
    </div>
    <aside class="panel news" aria-label="What happened">
      <p class="unseen" role="status" aria-live="polite">${replay.lines.at(-1)?.text ?? ""}</p>
      <ol class="log" tabindex="0" aria-label="What happened, latest first">
        ${replay.lines.toReversed().map((line) => html`<li key=${line.at}>${line.text}</li>`)}
      </ol>
      <div class="paces">
        <label>Pace
          <select value=${pace} onChange=${(event) => setPace(event.target.value)}>
            ${Object.keys(PACES).map((one) => html`<option value=${one}>${one}</option>`)}
          </select>
        </label>
        <label><input type="checkbox" checked=${waits} onChange=${(event) => setWaits(event.target.checked)} /> wait for me after each round</label>
      </div>
      <details class="rules"><summary>The rules in short</summary><p>${rulesOf(chair.table.game)}</p></details>
    </aside>
  </div>`;
}

/** Shows the seat's events one after another, as a question comes with all events before it. */
function useReplay(chair, game, scene, pause, waits) {
  const [, draw] = useReducer((n) => n + 1, 0);
  const replay = useRef(null);
  const { events } = chair;
  // A person who comes back has seen all this; and a refused answer is removed from the events.
  if (!replay.current || replay.current.at > events.length) replay.current = replayed(events, game, scene);
  const now = replay.current;
  while (now.at < chair.seen) advance(now, events, game, scene);

  const go = () => {
    now.isHeld = false;
    advance(now, events, game, scene);
    draw();
  };
  useEffect(() => {
    // Read here, not when it was drawn: a key pressed in between has shown one more event.
    const next = events[now.at];
    if (!next || now.isHeld) return undefined;
    const isEnd = now.state.done && beginsRound(next, game);
    if (isEnd && waits) {
      now.isHeld = true;
      draw();
      return undefined;
    }
    const wait = isEnd ? HOLD_MS : isSilent(next, game, scene, now.state) ? 0 : pause;
    if (wait === 0) {
      // Events that need no pause are shown at once.
      do advance(now, events, game, scene);
      while (now.at < events.length && !(now.state.done && beginsRound(events[now.at], game)) && (pause === 0 || isSilent(events[now.at], game, scene, now.state)));
      draw();
      return undefined;
    }
    const timer = setTimeout(go, wait);
    return () => clearTimeout(timer);
  });
  return { ...now, go, isUpToDate: now.at === events.length && !now.isHeld && !chair.isBehind, isLast: events[now.at]?.event === "over" };
}

function advance(now, events, game, scene) {
  const event = events[now.at];
  const text = describe(event, game, scene, now.state);
  if (text) now.lines = [...now.lines.slice(1 - LINES), { at: now.at, text }];
  now.state = game.step(now.state, event);
  now.at += 1;
}

function replayed(events, game, scene) {
  const now = { at: 0, state: game.start(scene), lines: [], isHeld: false };
  while (now.at < events.length) advance(now, events, game, scene);
  return now;
}

/** A round that is over stays on the table until this comes. */
function beginsRound(event, game) {
  return event.event === "over" || !isAfter(event, game);
}

/** A person's own answers need no pause. */
function isSilent(event, game, scene, state) {
  return event.event === "answered" || !describe(event, game, scene, state);
}

function describe(event, game, scene, state) {
  return event.event === "over" ? endOfMatch(event, scene.players) : game.describe(event, scene.players, state);
}

function GoOn({ onGo, isLast }) {
  useKeys({ Enter: onGo, " ": onGo });
  return html`<div class="moves" role="group" aria-label="Go on">
    <div class="answers"><button type="button" class="move main" onClick=${onGo}><span>${isLast ? "See the result" : "Next round"}</span><${Key}>↵<//></button></div>
  </div>`;
}

function Clock({ chair }) {
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(tick, TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const clock = chair.clock();
  if (!clock) return null;
  const { own, left } = clock;
  const text = own > 0 ? clockFace(own / 1000) : `bank ${clockFace(left / 1000)}`;
  return html`<span role="timer" class=${left < URGENT_MS ? "urgent" : ""} title="what is left for this decision; after it your bank is used">${text}</span>`;
}

function Ended({ chair, onAgain }) {
  const { over, table } = chair;
  const { scores, termination: end } = over;
  const blamed = end.seat == null ? null : table.players[end.seat];
  const offence = end.kind !== "completed";
  return html`<section class="panel ended" aria-label="The result">
    <h2 tabindex="-1">${verdictOf(table, scores, end)}</h2>
    ${offence && html`<p>${blamed ? html`<bdi>${blamed}</bdi>: ` : ""}${termination(end.kind)}${end.text ? `: ${end.text}` : ""}</p>`}
    <ul class="scores">${table.players.map((name, seat) => html`<li><bdi title=${name}>${name}</bdi> <b>${signed(scores[seat])}</b></li>`)}</ul>
    <p class="row">
      <a class="button" href=${href("m", chair.record)}>Step through the record</a>
      <button type="button" class="main" onClick=${onAgain}>Play again</button>
    </p>
  </section>`;
}

function verdictOf({ players, seat: me }, scores, end) {
  if (end.kind === "void") return "The match is void";
  if (end.seat === me) return "The match has ended with you";
  if (players.length === 1) return `You end at ${signed(scores[me])}`;
  const best = Math.max(...scores);
  const winners = players.filter((_, seat) => scores[seat] === best);
  if (scores[me] < best) return `${list(winners)} ${winners.length === 1 ? "wins" : "win"}`;
  return winners.length === 1 ? "You win" : "A draw";
}

function waitingFor(players, me) {
  const others = players.filter((_, seat) => seat !== me);
  return others.length === 0 ? "The dealer plays…" : others.length === 1 ? `Waiting for ${others[0]}…` : "Waiting for the others…";
}

/** Keeps the keyboard's focus at the table when a pressed button goes away with its question. */
function useFocusKept(table, hasMoves) {
  useEffect(() => {
    const active = document.activeElement;
    if (!hasMoves || (active && active !== document.body)) return;
    table.current?.querySelector(".turn")?.focus({ preventScroll: true });
  });
}
