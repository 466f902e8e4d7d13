// @ts-check
// A match at #/m/ID, or a moment of it at #/m/ID/ROUND/STEP: streamed while it is played, then recorded.

import { html, useEffect, useReducer, useState } from "../lib/preact.js";
import { ArenaError, api, fetchDocument, useToken, watch } from "../api.js";
import { Empty, Failure, Loading, Page } from "../components.js";
import { href } from "../route.js";
import { fetchGame } from "../table/games.js";
import { Live } from "../table/live.js";
import { Record } from "../table/record.js";
import { Watched } from "./match_live.js";
import { ownChairs } from "./play_chair.js";
import { Stepped } from "./match_record.js";

const RETRY_MS = 1000;
const RETRIES = 15; // a match that has just ended is written soon
const AWAY_MS = 5000; // until an arena that did not answer is asked again

/**
 * A match; a person's own is played here, even if another tab had it.
 * @param {{route: import("../route.js").Route}} props
 */
export default function Match({ route }) {
  const [isOwn, setOwn] = useState(() => ownChairs().some(({ match }) => match === route.id));
  const [play, setPlay] = useState(/** @type {any} */ (null));
  useEffect(() => {
    if (isOwn) import("./play.js").then(({ default: Play }) => setPlay(() => Play), () => setOwn(false));
  }, [isOwn]);
  if (!isOwn) return html`<${Shown} route=${route} />`;
  const Play = play;
  if (!Play) return html`<${Page} title="Match" label="Match"><${Loading} what="your table" /><//>`;
  return html`<${Play} route=${route} match=${route.id} onGone=${() => setOwn(false)} />`;
}

function Shown({ route }) {
  const token = useToken();
  const source = useMatch(route.id, token);
  const { live, record, error, missing, ended } = source;
  if (live) return html`<${Watched} key="live" id=${route.id} live=${live} lost=${source.lost} ended=${ended} wanted=${route.round ?? 0} moment=${route.step} />`;
  if (record) return html`<${Stepped} key=${`record ${token}`} id=${route.id} record=${record} route=${route} wasLive=${ended} />`;
  const frame = (content) => html`<${Page} title="Match" label="Match" crumbs=${[{ href: href(), title: "Lobby" }]}>${content}<//>`;
  if (missing) {
    return frame(html`<${Empty} title="There is no such match." text="It may have been played without a database, or its arena has been started anew.">
      <p><a href=${href("competitions")}>See the competitions</a></p><//>`);
  }
  if (error) return frame(html`<${Failure} error=${error} retry=${source.again} />`);
  return frame(html`<${Loading} what=${ended ? "the record: the match is over" : "the match"} />`);
}

/** Where a match comes from: the stream while it is played, then its record. */
function useMatch(id, token) {
  const [attempt, again] = useReducer((n) => n + 1, 0);
  const [source, setSource] = useState(/** @type {any} */ ({}));
  useEffect(() => {
    let gone = false;
    let stop = () => {};
    let live = null;
    let drawing = 0;
    const set = (more) => gone || setSource((before) => ({ ...before, ...more }));
    // Frames may come faster than the screen is drawn.
    const draw = () => {
      drawing ||= requestAnimationFrame(() => {
        drawing = 0;
        set({});
      });
    };
    const read = async (tries) => {
      try {
        const document = await fetchDocument(api("matches", id));
        const game = await fetchGame(document.game);
        const fetchRounds = (from, to) => fetchDocument(api("matches", id, "rounds"), { from, to });
        set({ live: null, error: null, record: new Record(game, document, fetchRounds, () => set({})) });
      } catch (error) {
        // Not all spectators at the same moment.
        if ([404, 503].includes(error.status) && tries > 0) setTimeout(() => gone || read(tries - 1), RETRY_MS * (0.5 + Math.random()));
        else if (error.status === 404) set({ missing: true, live: null });
        else {
          set({ error, live: null });
          if (!(error.status >= 400 && error.status < 500)) setTimeout(() => gone || read(tries), AWAY_MS);
        }
      }
    };
    let scene = null; // the latest: a connection that was lost begins anew
    let frames = []; // of the scene, that came before the game's module
    const begin = async (message) => {
      scene = message;
      frames = [];
      live = null;
      try {
        const game = await fetchGame(message.game);
        if (scene !== message) return;
        live = new Live(game, message);
        for (const frame of frames) live.feed(frame, performance.now());
        set({ live, lost: false, error: null });
      } catch {
        if (scene !== message) return;
        set({ error: new ArenaError("the table could not be fetched; trying again, or load the page again") });
        setTimeout(() => gone || scene !== message || again(), AWAY_MS);
      }
    };
    const heard = (message) => {
      if (gone) return;
      if (message.type === "scene") {
        begin(message);
      } else if (message.type === "events") {
        if (!live) return void frames.push(message);
        live.feed(message, performance.now());
        draw();
      } else if (message.type === "gone") {
        stop();
        const wasLive = scene !== null;
        set({ ended: wasLive });
        read(wasLive ? RETRIES : 0);
      } else if (message.type === "refused") {
        stop();
        set({ error: new ArenaError(message.text, message.code === "token" ? 401 : 0), live: null });
      } else if (message.type === "lost") {
        set({ lost: true });
      } else if (message.type === "back") {
        set({ lost: false });
      }
    };
    setSource({});
    stop = watch("match", id, heard);
    return () => {
      gone = true;
      cancelAnimationFrame(drawing);
      stop();
    };
  }, [id, token, attempt]);
  return { ...source, again };
}
