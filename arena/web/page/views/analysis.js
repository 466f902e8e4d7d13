// @ts-check
// What the arena analyses in the background: how far it is, asked for again every second until it is done.

import { html } from "../lib/preact.js";
import { useDocument } from "../api.js";
import { Failure, Progress } from "../components.js";
import { capital, number } from "../format.js";

const AGAIN_MS = 1000;

/** @param {any} status */
function againMs(status) {
  return ["queued", "running"].includes(status?.state) ? AGAIN_MS : 0;
}

/** An analysis, which asking for it queues. @param {string|null} path  null asks for none @param {Record<string, string|number>} params */
export function useAnalysis(path, params) {
  return useDocument(path, params, againMs);
}

/**
 * What came of an analysis, or how far it is, or why there is none.
 * @param {{read: any, what: string, units: string, children: (status: any) => any}} props  what: in few words; units: what progress counts
 */
export function Analysed({ read, what, units, children }) {
  const { data, error, loading, reload } = read;
  if (data?.state === "done") return children(data);
  if (error?.status === 403) return html`<p class="faint" role="status">${capital(error.message)}.</p>`;
  if (error) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!data && !loading) return null;
  const { state, place, done, of, text } = data ?? { state: "loading" };
  const isOver = state === "refused" || state === "failed";
  const says = {
    loading: "Asking the arena…",
    queued: `Waits to be analysed: number ${number(place ?? 1)} in the queue.`,
    running: `The arena analyses ${what}.`,
  };
  return html`<div class="analysed">
    <p role="status">${isOver ? "" : `${says[state]} `}${text && `${capital(text)}.`}</p>
    ${state === "running" && of > 0 && html`<p class="row"><${Progress} done=${done} all=${of} label=${`analysis of ${what}`} /> <span class="faint">${number(done)} of ${number(of)} ${units}</span></p>`}
    ${isOver && html`<p><button type="button" onClick=${reload}>Ask again</button></p>`}
  </div>`;
}
