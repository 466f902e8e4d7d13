// The connection at `/submit`: rules, lists and progress stay up to date; every request has a connection of its own.
// What is being sent outlives the view, so that a person may look at something else meanwhile.

import { useEffect, useReducer } from "../lib/preact.js";
import { ArenaError, keepOpen, openSubmit, token, useToken } from "../api.js";

const LOOK_MS = 30_000; // between two looks whether something has changed elsewhere
const QUEUE_MS = 4000; // the same while an instructor sees a queue
const ANSWER_MS = 15_000; // until the first answer
const UNSENT_BYTES = 512 * 1024; // may wait in the browser
const UNSENT_MS = 50;
const LINGER_MS = 1000;
const LOST = "the connection to the arena is lost";

/**
 * @typedef {object} Run  how far a submission is
 * @property {number} submission
 * @property {string} state  waiting, building, checking, accepted or refused
 * @property {{step: string, status: string, text: string}[]} steps
 * @property {string} text  the verdict, or what is in play now
 * @property {number | null} position
 * @property {number | null} expected_s
 * @property {number | null} version
 */

const NOTHING = { rules: null, entries: null, inPlay: [], live: false, error: null, upload: null };
/** @type {any} */
const link = { ...NOTHING, /** @type {Map<number, Run>} */ runs: new Map(), /** @type {Set<number>} */ followed: new Set(), owner: "", socket: null, shown: "", timer: 0, leaving: 0, readers: new Set() };

function changed() {
  for (const reader of [...link.readers]) reader();
}

export const isDecided = ({ state }) => state === "accepted" || state === "refused";

function heard(message) {
  const { type } = message;
  if (type === "rules") {
    Object.assign(link, { rules: message, live: true, error: null });
    look();
  } else if (type === "submissions") {
    Object.assign(link, { entries: message.entries, inPlay: message.in_play });
    for (const entry of message.entries) {
      const run = link.runs.get(entry.submission);
      // An instructor sees the queue in the list itself.
      if (!isDecided(entry)) link.rules?.owner && follow(entry.submission);
      else if (run && !isDecided(run)) link.runs.set(entry.submission, { ...run, ...entry }); // decided while the connection was lost
    }
  } else if (type === "progress") {
    progressed(message);
  } else if (type === "lost") {
    link.live = false;
    link.followed.clear();
  } else if (type === "refused" && !link.live) {
    link.error = new ArenaError(message.text);
    link.socket.stop(); // a token that is not known counts against everybody behind the same address
    link.socket = null;
  }
  changed();
}

/** Hear how far a submission is, from its beginning; once more does nothing. @param {number} submission */
export function follow(submission) {
  if (link.followed.has(submission)) return;
  link.followed.add(submission);
  link.runs.set(submission, { submission, state: "waiting", steps: [], text: "", position: null, expected_s: null, version: null });
  link.socket?.send({ type: "follow", submission });
}

function progressed({ submission, state, step, status, text, position, expected_s, version }) {
  const before = link.runs.get(submission);
  if (!before) return;
  const steps = step ? [...before.steps.filter((one) => one.status !== "begun"), { step, status, text }] : state === "waiting" ? [] : before.steps; // one at a time; what waits begins anew
  const run = { submission, state, steps, text: step ? before.text : text, position, expected_s, version };
  link.runs.set(submission, run);
  if (!isDecided(run)) return;
  link.followed.delete(submission); // an instructor may have it built again
  look();
}

/** Ask what there is now. */
function look() {
  clearTimeout(link.timer);
  if (link.live && !document.hidden) link.socket?.send({ type: "list", ...(link.owner && { owner: link.owner }) });
  const hasQueue = link.rules?.owner === null && link.entries?.some((entry) => !isDecided(entry));
  link.timer = setTimeout(look, hasQueue ? QUEUE_MS : LOOK_MS);
}

/** Of whom an instructor sees the submissions, "" for all. */
export function lookAt(owner) {
  link.owner = owner;
  look();
}

function enter() {
  link.shown = token();
  link.socket = keepOpen(openSubmit, () => ({ type: "enter", token: token() }), heard);
}

function leave() {
  clearTimeout(link.timer);
  link.upload?.giveUp();
  link.socket?.stop();
  link.runs.clear();
  link.followed.clear();
  Object.assign(link, NOTHING, { socket: null, owner: "" });
}

/** Enter anew after a refusal. */
export function again() {
  leave();
  enter();
  changed();
}

/** The rules, what was handed in, and how far that is; one connection for all who use it. */
export function useSubmissions() {
  const shown = useToken();
  const [, draw] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    clearTimeout(link.leaving);
    link.readers.add(draw);
    if (link.shown !== shown) leave();
    if (!link.socket && shown) enter();
    draw();
    return () => {
      link.readers.delete(draw);
      link.leaving = setTimeout(() => link.readers.size || link.upload?.busy || leave(), LINGER_MS);
    };
  }, [shown]);
  return link;
}

/**
 * Ask for one thing.
 * @template T
 * @param {object} message
 * @param {(answer: any, socket: any) => T | undefined} hear  what the answer brings; undefined as long as there is more to come
 * @param {AbortSignal} [signal]  that it is not wanted any more
 * @returns {Promise<T>} throws ArenaError with the arena's one line
 */
export function request(message, hear, signal) {
  return new Promise((resolve, reject) => {
    const end = (settle, value) => {
      clearTimeout(timer);
      socket.close();
      settle(value);
    };
    const timer = setTimeout(() => end(reject, new ArenaError("the arena has not answered")), ANSWER_MS);
    const answered = (answer) => {
      if (answer.type === "refused") return end(reject, new ArenaError(answer.text));
      if (answer.type === "rules") {
        if (link.rules) link.rules = answer; // how many are left today has changed
        return socket.send(message);
      }
      clearTimeout(timer);
      const value = hear(answer, socket);
      if (value !== undefined) end(resolve, value);
    };
    const socket = openSubmit(answered, () => end(reject, new ArenaError(LOST)));
    signal?.addEventListener("abort", () => end(reject, new ArenaError("given up")));
    socket.send({ type: "enter", token: token() });
  });
}

/** Ask for something that changes the list, and see the list again. @param {object} message @returns {Promise<string>} what the arena says */
export async function change(message) {
  const text = await request(message, (answer) => answer.text ?? "");
  look();
  return text;
}

/** The log of a submission. @param {number} submission */
export const fetchLog = (submission) => request({ type: "log", submission }, (answer) => (answer.type === "log_text" ? answer : undefined));

/** A program as a zip archive. @param {number} submission @returns {Promise<Blob>} */
export function fetchProgram(submission) {
  const parts = [];
  return request({ type: "download", submission }, ({ type, data }) => {
    if (type !== "piece") return undefined;
    if (!data) return new Blob(parts, { type: "application/zip" });
    parts.push(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)));
    return undefined;
  });
}

/** Send a program; `link.upload` says how far it is, and afterwards what is wrong; false if it was not taken. @param {string} name @param {Blob} blob @param {string} message */
export async function handIn(name, blob, message) {
  const giveUp = new AbortController();
  const over = new AbortController();
  const say = (more) => {
    link.upload = { ...link.upload, ...more };
    changed();
  };
  link.upload = null;
  say({ name, size: blob.size, got: 0, position: null, busy: true, error: null, submission: null, giveUp: () => giveUp.abort() });
  try {
    const submission = await request({ type: "submit", name, size: blob.size, message }, (answer, socket) => {
      if (answer.type === "turn") say({ position: answer.position });
      if (answer.type === "got") say({ got: answer.bytes });
      if (answer.type === "send") {
        say({ position: null });
        sendPieces(blob, answer.piece_bytes, socket, over.signal);
      }
      return answer.type === "progress" ? answer.submission : undefined;
    }, giveUp.signal);
    say({ busy: false, submission });
    if (link.socket) follow(submission);
    request({ type: "list" }, (answer) => (heard(answer), true)).catch(look);
    return true;
  } catch (error) {
    const text = giveUp.signal.aborted ? "" : error.message === LOST ? `${LOST}; see below whether it has arrived, or else hand it in again` : error.message;
    say({ busy: false, error: text && new ArenaError(text) });
    return false;
  } finally {
    over.abort();
    if (!link.readers.size) leave();
  }
}

/** @param {Blob} blob @param {AbortSignal} signal */
async function sendPieces(blob, most, socket, signal) {
  for (let at = 0; at < blob.size; at += most) {
    while (socket.unsent() > UNSENT_BYTES && !signal.aborted) await new Promise((done) => setTimeout(done, UNSENT_MS));
    const bytes = new Uint8Array(await blob.slice(at, at + most).arrayBuffer());
    if (signal.aborted) return;
    socket.send({ type: "piece", data: base64(bytes) });
  }
}

/** @param {Uint8Array} bytes */
function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}
