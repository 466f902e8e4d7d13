// Curves and histograms, drawn as vectors of our own: they take the colours of the page, and print. Both say in words what they
// show, for those who do not see them.

import { html, useEffect, useMemo, useRef, useState } from "./lib/preact.js";
import { count, number, time } from "./format.js";

const HEIGHT = 240;
const MARGIN = { top: 8, right: 12, bottom: 26, left: 58 };
const NO_MARKS = /** @type {[number, string][]} */ ([]);
const BARS_REM = 11; // the highest bar; its figures stand above and below
const DAY_S = 86_400;
const STEPS_S = [1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 21_600, 43_200, DAY_S, 2 * DAY_S, 7 * DAY_S, 30 * DAY_S, 365 * DAY_S];

/**
 * A curve over x, or several.
 * @param {object} props
 * @param {string} props.label  what it shows, in a sentence
 * @param {number[]} props.x  rising
 * @param {{title: string, y: (number | null)[]}[]} props.series
 * @param {boolean} [props.times]  x are Unix seconds
 * @param {string} [props.xTitle]  what x counts
 * @param {number} [props.height]  in pixels
 * @param {{low: (number | null)[], high: (number | null)[]}} [props.band]  around the first curve
 * @param {[number, string][]} [props.marks]  what began at an x
 */
export function Chart({ label, x, series, times = false, xTitle = "", height = HEIGHT, band, marks = NO_MARKS }) {
  const place = useRef(null);
  const [width, setWidth] = useState(0);
  const [on, setOn] = useState(null);
  useEffect(() => {
    const sized = new ResizeObserver(() => setWidth(place.current?.clientWidth ?? 0));
    sized.observe(place.current);
    return () => sized.disconnect();
  }, []);
  const drawn = useMemo(() => width > 0 && x.length > 0 && frameOf(x, band ? [...series, { y: band.low }, { y: band.high }] : series, width, height, times), [x, series, band, width, height]);
  const picture = useMemo(() => drawn && html`<${Axes} ...${drawn} />${band && html`<path class="band" d=${areaOf(x, band, drawn)} />`}${series.map(({ y }, index) => html`<path class=${`curve line-${index + 1}`} d=${pathOf(x, y, drawn)} />`)}${marks.map(([at, text]) => html`<g class="mark-line"><line x1=${drawn.px(at)} x2=${drawn.px(at)} y1=${MARGIN.top} y2=${height - MARGIN.bottom} /><text x=${drawn.px(at) + 4} y=${MARGIN.top + 10}>${text}</text></g>`)}`, [drawn, marks]);
  const at = (event) => nearest(x, drawn.valueAt(event.clientX - place.current.getBoundingClientRect().left));
  const is = drawn && on !== null && on < x.length;
  return html`<figure class="chart">
    <div ref=${place} class="plot" style=${{ height: `${height}px` }} role="img" aria-label=${label}
      onPointerMove=${(event) => drawn && setOn(at(event))} onPointerLeave=${() => setOn(null)}>
      ${drawn &&
      html`<svg width=${width} height=${height} aria-hidden="true">
        ${picture}
        ${is && html`<line class="at" x1=${drawn.px(x[on])} x2=${drawn.px(x[on])} y1=${MARGIN.top} y2=${height - MARGIN.bottom} />`}
      </svg>`}
    </div>
    <figcaption>${is ? readout(x[on], on, series, times, xTitle) : html`${series.length > 1 && series.map(({ title }, index) => html`<span class=${`key line-${index + 1}`}>${title} </span>`)}${label}`}</figcaption>
  </figure>`;
}

function readout(x, index, series, times, xTitle) {
  const where = times ? time(x) : `${number(x)}${xTitle && ` ${xTitle}`}`;
  return html`${where}: ${series.map(({ title, y }, line) => html`<span class=${`key line-${line + 1}`}>${title} ${number(y[index], Number.isInteger(y[index]) ? 0 : 2)} </span>`)}`;
}

/** The layout: scales to pixels and back, and the ticks of both axes. */
function frameOf(x, series, width, height, times) {
  const values = series.flatMap(({ y }) => y).filter((value) => value !== null);
  const [left, right] = [x[0], x[x.length - 1] > x[0] ? x[x.length - 1] : x[0] + 1];
  const low = values.reduce((least, value) => Math.min(least, value), 0);
  const high = values.reduce((most, value) => Math.max(most, value), low === 0 ? 1 : 0);
  const ys = ticks(low, high, Math.max(2, Math.floor(height / 45)), niceStep);
  const [bottom, top] = [Math.min(low, ys[0]), Math.max(high, ys[ys.length - 1])];
  const room = [width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom];
  return {
    width, height, ys, times, long: right - left > DAY_S,
    xs: ticks(left, right, Math.max(2, Math.floor(width / 90)), times ? timeStep : (size) => Math.max(1, niceStep(size))).filter((tick) => tick >= left && tick <= right),
    px: (value) => MARGIN.left + (room[0] * (value - left)) / (right - left),
    py: (value) => MARGIN.top + (room[1] * (top - value)) / (top - bottom),
    valueAt: (pixel) => left + ((right - left) * (pixel - MARGIN.left)) / room[0],
  };
}

function ticks(low, high, most, stepOf) {
  const step = stepOf((high - low) / most);
  const found = [];
  for (let tick = Math.floor(low / step) * step; tick < high + step; tick += step) found.push(tick);
  return found;
}

/** 1, 2 or 5 times a power of ten, at least `size`. */
function niceStep(size) {
  const ten = 10 ** Math.floor(Math.log10(size));
  return ten * ([1, 2, 5].find((many) => many * ten >= size * (1 - 1e-9)) ?? 10);
}

function timeStep(size) {
  return STEPS_S.find((step) => step >= size) ?? niceStep(size);
}

function Axes({ xs, ys, px, py, width, height, times, long }) {
  const say = times && new Intl.DateTimeFormat("en-GB", long ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" });
  return html`<g class="axes">
    ${ys.map((y) => html`<line class=${y === 0 ? "nought" : ""} x1=${MARGIN.left} x2=${width - MARGIN.right} y1=${py(y)} y2=${py(y)} /><text x=${MARGIN.left - 8} y=${py(y) + 4} text-anchor="end">${number(y, Number.isInteger(y) ? 0 : 2)}</text>`)}
    ${xs.map((x) => html`<line x1=${px(x)} x2=${px(x)} y1=${MARGIN.top} y2=${height - MARGIN.bottom} /><text x=${px(x)} y=${height - 6} text-anchor="middle">${say ? say.format(x * 1000) : number(x)}</text>`)}
  </g>`;
}

/** The outline of a band: its lower edge and back along the upper one. */
function areaOf(x, { low, high }, { px, py }) {
  const points = (edge) => x.flatMap((at, index) => (edge[index] === null ? [] : [`${px(at).toFixed(1)} ${py(edge[index]).toFixed(1)}`]));
  return `M${[...points(low), ...points(high).reverse()].join("L")}Z`;
}

/** The line through the points; where many share a pixel, the first, least, greatest and last of them. */
function pathOf(x, y, { px, py }) {
  const points = [];
  let from = 0;
  const point = (index) => points.push(`${Math.round(px(x[index]) * 10) / 10} ${Math.round(py(y[index]) * 10) / 10}`);
  while (from < x.length) {
    let to = from;
    let [least, most] = [from, from];
    while (to + 1 < x.length && px(x[to + 1]) - px(x[from]) < 1) {
      to += 1;
      if (y[to] < y[least]) least = to;
      if (y[to] > y[most]) most = to;
    }
    for (const index of new Set([from, Math.min(least, most), Math.max(least, most), to])) if (y[index] !== null) point(index);
    from = to + 1;
  }
  return points.length ? `M${points.join("L")}` : "";
}

function nearest(x, value) {
  let [low, high] = [0, x.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low > 0 && value - x[low - 1] < x[low] - value ? low - 1 : low;
}

/**
 * @param {object} props
 * @param {string} props.label  what it shows, in a sentence
 * @param {{from: string, count: number, title: string}[]} props.bars  title: what the bar is about, without its figure
 */
export function Histogram({ label, bars }) {
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  return html`<figure class="chart">
    <div class="bars" role="img" aria-label=${label}>
      ${bars.map(
        (bar) => html`<div class="slot" title=${`${bar.title}: ${count(bar.count, "decision")}`}>
          <span class="much">${bar.count ? number(bar.count) : ""}</span>
          <span class="fill" style=${{ height: `${(BARS_REM * bar.count) / most}rem` }}></span>
          <span class="from">${bar.from}</span>
        </div>`,
      )}
    </div>
    <figcaption>${label}</figcaption>
  </figure>`;
}
