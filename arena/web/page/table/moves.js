// @ts-check
// The controls of a person who plays: a button for every legal answer, each with its key, and a field for amounts.

import { html, useLayoutEffect, useRef, useState } from "../lib/preact.js";
import { number } from "../format.js";

/**
 * Call what belongs to a key while a component is shown; never while somebody types, and never with a modifier.
 * @param {Record<string, () => void>} keys  by `KeyboardEvent.key`, letters in lower case
 */
export function useKeys(keys) {
  const latest = useRef(keys);
  latest.current = keys;
  // At once with what it belongs to: a key that is pressed as soon as its button is seen must count.
  useLayoutEffect(() => {
    const pressed = (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
      if (document.querySelector("dialog[open]")) return; // which asks something else
      const target = /** @type {HTMLElement} */ (event.target);
      if (target.closest?.("input, textarea, select, [contenteditable]")) return;
      // A button or link that has the focus keeps its own keys, and so does what scrolls.
      if ((event.key === " " || event.key === "Enter") && target.closest?.("button, a, summary")) return;
      if (/^(Arrow|Home|End| )/.test(event.key) && target.closest?.('[tabindex="0"]')) return;
      const act = latest.current[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (act) {
        event.preventDefault();
        // A key that is held down must not answer what is asked next.
        if (!event.repeat || /^(Arrow|[+-])/.test(event.key)) act();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

/** The sign of a key on a button. */
export function Key({ children }) {
  return html`<kbd aria-hidden="true">${children}</kbd>`;
}

/**
 * One button for each answer.
 * @param {{moves: {value: any, text: any, key: string, hint?: string, off?: boolean, look?: string}[], onAnswer: (value: any) => void,
 *   disabled?: boolean, title?: any, children?: any}} props
 */
export function Buttons({ moves, onAnswer, disabled = false, title = "", children }) {
  const keys = /** @type {Record<string, () => void>} */ ({});
  for (const move of moves) {
    if (move.key && !disabled && !move.off) keys[move.key] = () => onAnswer(move.value);
  }
  useKeys(keys);
  return html`<div class="moves" role="group" aria-label="Your moves">
    ${title ? html`<p class="question">${title}</p>` : null}
    ${children}
    <div class="answers">
      ${moves.map((move) => html`<button type="button" class=${`move ${move.look ?? ""}`} disabled=${disabled || move.off} title=${move.hint}
        aria-keyshortcuts=${move.key || null} onClick=${() => onAnswer(move.value)}><span>${move.text}</span>${move.key ? html`<${Key}>${keyName(move.key)}<//>` : null}</button>`)}
    </div>
  </div>`;
}

function keyName(key) {
  return key === "Enter" ? "↵" : key === " " ? "space" : key.toUpperCase();
}

/**
 * An amount within a range: − and +, quick amounts, a field to type in, and the button that says it.
 * @param {{range: {min: number, max: number}, quick: {text: string, amount: number, key: string}[], verb: string, title: any, first?: number,
 *   stride?: number, onAnswer: (value: number) => void, disabled?: boolean}} props
 */
export function Amount({ range, quick, verb, title, first, stride = 1, onAnswer, disabled = false }) {
  const within = (amount) => Math.min(range.max, Math.max(range.min, Math.round(amount)));
  const [text, setText] = useState(String(within(first ?? range.min)));
  const amount = /^-?\d+$/.test(text.trim()) ? Number(text) : NaN;
  const isLegal = amount >= range.min && amount <= range.max;
  const set = (value) => setText(String(within(value)));
  const by = (change) => set((Number.isNaN(amount) ? range.min : amount) + change);
  const say = () => {
    if (isLegal && !disabled) onAnswer(amount);
  };
  const keys = { "-": () => by(-stride), "+": () => by(stride), ArrowDown: () => by(-stride), ArrowUp: () => by(stride), Enter: say };
  const quicks = quick.filter(({ amount: at }) => at >= range.min && at <= range.max);
  for (const { key, amount: at } of quicks) keys[key] = () => set(at);
  useKeys(disabled ? {} : keys);
  const submit = (event) => {
    event.preventDefault();
    say();
  };
  return html`<form class="moves amount" aria-label="Your moves" onSubmit=${submit}>
    <p class="question">${title}</p>
    <div class="answers">
      <button type="button" class="move" disabled=${disabled || amount <= range.min} aria-label=${`${number(stride)} less`} onClick=${() => by(-stride)}><span>−</span></button>
      <input type="text" inputmode="numeric" autocomplete="off" aria-label=${`Amount, ${number(range.min)} to ${number(range.max)}`} aria-invalid=${!isLegal}
        value=${text} disabled=${disabled} onInput=${(event) => setText(event.target.value)} size="7" />
      <button type="button" class="move" disabled=${disabled || amount >= range.max} aria-label=${`${number(stride)} more`} onClick=${() => by(stride)}><span>+</span></button>
      ${quicks.map(({ text: name, amount: at, key }) => html`<button type="button" class="move quick" disabled=${disabled} aria-keyshortcuts=${key}
        onClick=${() => set(at)}><span>${name} ${number(at)}</span><${Key}>${keyName(key)}<//></button>`)}
      <button type="submit" class="move main" disabled=${disabled || !isLegal} aria-keyshortcuts="Enter"><span>${verb} ${isLegal ? number(amount) : "…"}</span><${Key}>↵<//></button>
    </div>
    ${isLegal ? null : html`<p class="hint" role="status">expected a whole number from ${number(range.min)} to ${number(range.max)}</p>`}
  </form>`;
}
