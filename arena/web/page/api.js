// How the page talks to the arena: documents over HTTP, streams and requests over WebSockets.
// Only `instruct`, `openViewer`, `openBot` and `openSubmit` can change anything.

import { useEffect, useReducer, useRef, useState } from "./lib/preact.js";
import { load, save } from "./storage.js";

const TOKEN = "arena.token";
const PATIENCE_MS = 15_000; // for an answer
const SOONEST_MS = 500; // before the next attempt to connect, doubled up to LATEST_MS
const LATEST_MS = 10_000;
const AFTER_FAILURE_MS = 5000; // until a document is asked for again

const listeners = new Set();

/** What the arena answered instead of what was asked for; `message` is its one line. */
export class ArenaError extends Error {
  /** @param {string} message @param {number} status  0: there was no answer */
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/** The token that this browser shows the arena, "" for none. */
export function token() {
  return load(TOKEN);
}

/** Show this token from now on, in every tab; all documents are read again with it. */
export function setToken(value) {
  save(TOKEN, value);
  tokenChanged();
}

function tokenChanged() {
  for (const listener of [...listeners]) listener();
}

// Another tab has logged in or out, or the storage was cleared.
addEventListener("storage", ({ key }) => (key === TOKEN || key === null) && tokenChanged());

/** Whose token that is: {kind, name}; throws ArenaError, with status 401 if it is nobody's. @param {string} value */
export async function whose(value) {
  return JSON.parse(await fetchText(api("me"), null, undefined, value));
}

/** The token, for components that must be drawn again when it changes. */
export function useToken() {
  const [, again] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    listeners.add(again);
    return () => listeners.delete(again);
  }, []);
  return token();
}

/** `api("competitions", id, "bot")` → "api/competitions/ID/bot.json", which is below the page wherever that is. */
export function api(...parts) {
  return `api/${parts.map(encodeURIComponent).join("/")}.json`;
}

/**
 * Read a document.
 * @param {string} path  as `api()` makes it
 * @param {Record<string, string | number> | null} [params]
 * @param {AbortSignal} [signal]  that it is not wanted any more
 * @returns {Promise<any>} throws ArenaError with the arena's one line
 */
export async function fetchDocument(path, params, signal) {
  return JSON.parse(await fetchText(path, params, signal));
}

/** As `fetchDocument`, before it is parsed. @param {string} path @param {Record<string, string | number> | null} [params] @param {AbortSignal} [signal] @returns {Promise<string>} */
export async function fetchText(path, params, signal, shown = token()) {
  const query = new URLSearchParams(params ?? {}).toString();
  const headers = { Accept: "application/json" };
  if (shown) headers.Authorization = `Bearer ${shown}`;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), PATIENCE_MS);
  const giveUp = () => late.abort();
  signal?.addEventListener("abort", giveUp);
  try {
    const response = await fetch(path + (query && `?${query}`), { headers, signal: late.signal });
    const text = await response.text();
    if (!response.ok) throw new ArenaError(errorIn(text) ?? `the arena answered ${response.status}`, response.status);
    return text;
  } catch (error) {
    if (error instanceof ArenaError || signal?.aborted) throw error;
    throw new ArenaError("the arena does not answer; is it still running, and this device on its network?");
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", giveUp);
  }
}

function errorIn(text) {
  try {
    return JSON.parse(text).error ?? null;
  } catch {
    return null;
  }
}

/**
 * A document, read again every `everyMs` while the tab can be seen. Data that has not changed stays the same object.
 * A refused request is not repeated: wrong tokens count against everybody behind the same address.
 * @param {string | null} path  null reads nothing
 * @param {Record<string, string | number> | null} [params]
 * @param {number | ((data: any) => number)} [everyMs]  0 for never again
 * @returns {{data: any, error: ArenaError | null, loading: boolean, reload: () => void}}
 */
export function useDocument(path, params, everyMs) {
  const shown = useToken();
  const key = path && JSON.stringify([path, params ?? null, shown]);
  const [state, setState] = useState(/** @type {any} */ ({ key: null, text: "", data: null, error: null }));
  const [round, reload] = useReducer((n) => n + 1, 0);
  const latest = useRef(state);
  latest.current = state;
  useEffect(() => {
    if (!key) return undefined;
    const stop = new AbortController();
    let timer = 0;
    const read = async () => {
      const next = (data) => (typeof everyMs === "function" ? everyMs(data) : everyMs ?? 0);
      let pause = next(null);
      try {
        const text = await fetchText(path, params, stop.signal);
        if (stop.signal.aborted) return;
        const before = latest.current;
        const data = before.key === key && before.text === text ? before.data : JSON.parse(text);
        if (before.data !== data || before.error) setState({ key, text, data, error: null });
        pause = next(data);
      } catch (error) {
        if (stop.signal.aborted) return;
        const isRefused = error.status >= 400 && error.status < 500;
        pause = isRefused ? 0 : Math.max(pause, AFTER_FAILURE_MS); // an arena that is away comes back
        setState((before) => (before.key === key ? { ...before, error } : { key, text: "", data: null, error }));
      }
      if (pause) timer = setTimeout(again, pause);
    };
    const again = () => {
      if (document.hidden) document.addEventListener("visibilitychange", read, { once: true });
      else read();
    };
    read();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", read);
    };
  }, [key, everyMs, round]);
  const is = state.key === key;
  return { data: is ? state.data : null, error: is ? state.error : null, loading: Boolean(key) && !is, reload };
}

/** The address of a WebSocket, from the page's own. */
function address(path) {
  const url = new URL(path, document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

/** Where bots connect. */
export function botAddress() {
  const url = new URL(address("./"));
  return url.pathname === "/" ? url.origin : url.href;
}

function open(path, onMessage, onClose, onOpen) {
  const socket = new WebSocket(address(path));
  const waiting = [];
  socket.onopen = () => {
    onOpen?.();
    for (const text of waiting.splice(0)) socket.send(text);
  };
  socket.onmessage = ({ data }) => onMessage(JSON.parse(data));
  socket.onclose = ({ code, reason }) => onClose?.(code, reason);
  return {
    /** Send a message, now or as soon as the connection stands. */
    send(message) {
      const text = JSON.stringify(message);
      if (socket.readyState === WebSocket.CONNECTING) waiting.push(text);
      else if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    /** How many bytes have not left yet. */
    unsent: () => socket.bufferedAmount,
    close() {
      socket.onclose = null;
      socket.onmessage = null;
      // Closing before it is open would log an error in the console.
      if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close(1000);
      else socket.close(1000);
    },
  };
}

/** A viewer's socket (`/watch`) of one's own, as one needs to sit down. @returns {{send(m: object): void, close(): void}} */
export function openViewer(onMessage, onClose, onOpen) {
  return open("watch", onMessage, onClose, onOpen);
}

/** An ordinary bot's connection: the person who sits down is one. @returns {{send(m: object): void, close(): void}} */
export function openBot(onMessage, onClose, onOpen) {
  return open("./", onMessage, onClose, onOpen);
}

/** A connection of somebody who hands programs in. */
export function openSubmit(onMessage, onClose, onOpen) {
  return open("submit", onMessage, onClose, onOpen);
}

/**
 * Watch the lobby or a match; comes back by itself when the connection is lost.
 * @param {"lobby" | "match"} topic
 * @param {string | null} match
 * @param {(message: any) => void} onMessage  the arena's messages, and {type: "lost"} and {type: "back"}
 * @returns {() => void} stops watching
 */
export function watch(topic, match, onMessage) {
  // The lobby is public: an outdated token must not lock anybody out of it.
  const wish = () => (match ? { type: "watch", topic, match, ...(token() && { token: token() }) } : { type: "watch", topic });
  return keepOpen(openViewer, wish, onMessage).stop;
}

/**
 * A connection that comes back by itself when it is lost.
 * @param {typeof openViewer} opens
 * @param {() => object} first  the message that each connection begins with
 * @param {(message: any) => void} onMessage  the arena's messages, and {type: "lost"} and {type: "back"}
 * @returns {{send(m: object): void, stop(): void}}
 */
export function keepOpen(opens, first, onMessage) {
  let wait = SOONEST_MS;
  let lost = false;
  let timer = 0;
  let socket;
  const connect = () => {
    socket = opens(onMessage, closed, opened);
    socket.send(first());
  };
  const opened = () => {
    if (lost) onMessage({ type: "back" });
    lost = false;
    timer = setTimeout(() => (wait = SOONEST_MS), 2 * LATEST_MS);
  };
  const closed = () => {
    clearTimeout(timer);
    if (!lost) onMessage({ type: "lost" });
    lost = true;
    // Not all at the same moment, when an arena that a class is watching comes back.
    timer = setTimeout(connect, wait * (0.75 + Math.random() / 2));
    wait = Math.min(LATEST_MS, wait * 2);
  };
  connect();
  return {
    send: (message) => socket.send(message),
    stop() {
      clearTimeout(timer);
      socket.close();
    },
  };
}

/** @type {{data: any, live: boolean, error: ArenaError | null, stop: (() => void) | null, leaving: any, readers: Set<() => void>}} */
const lobby = { data: null, live: false, error: null, stop: null, leaving: 0, readers: new Set() };

function onLobby(message) {
  if (message.type === "lobby") Object.assign(lobby, { data: message, live: true, error: null });
  else if (message.type === "lost") lobby.live = false;
  else if (message.type === "refused") lobby.error = new ArenaError(message.text);
  else return;
  for (const reader of [...lobby.readers]) reader();
}

/**
 * The lobby's document as the arena pushes it; one socket for all who use it.
 * @returns {{lobby: any | null, live: boolean, error: ArenaError | null}}
 */
export function useLobby() {
  const [, again] = useReducer((n) => n + 1, 0);
  const { data } = lobby;
  useEffect(() => {
    clearTimeout(lobby.leaving);
    lobby.readers.add(again);
    if (lobby.data !== data) again(); // it came between the drawing and now; where nothing changes no other follows
    lobby.stop ??= watch("lobby", null, onLobby);
    return () => {
      lobby.readers.delete(again);
      lobby.leaving = setTimeout(() => {
        if (lobby.readers.size) return;
        lobby.stop?.();
        Object.assign(lobby, { stop: null, live: false });
      }, 1000);
    };
  }, []);
  return { lobby: lobby.data, live: lobby.live, error: lobby.error };
}

/**
 * Send an instructor's request with the token of this browser.
 * @param {{action: string}} message
 * @returns {Promise<any>} the arena's `done`; throws ArenaError with its one line when it is refused
 */
export function instruct(message) {
  return new Promise((resolve, reject) => {
    const end = (settle, value) => {
      clearTimeout(timer);
      socket.close();
      settle(value);
    };
    const timer = setTimeout(() => end(reject, new ArenaError("the arena has not answered")), PATIENCE_MS);
    const heard = (answer) => {
      if (answer.type === "done") end(resolve, answer);
      else if (answer.type === "refused") end(reject, new ArenaError(answer.text, 403));
    };
    const socket = openViewer(heard, () => end(reject, new ArenaError("the connection to the arena is lost")));
    socket.send({ type: "instruct", protocol: 1, token: token(), ...message });
  });
}
