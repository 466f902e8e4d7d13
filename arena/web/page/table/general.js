// @ts-check
// The view of a game that has none of its own, made from its questions and news: what each seat has before it and has said, what lies
// in the middle, whose turn it is, and the scores. The words are the game's, as the arena has put them into the events.
//
// A fact is a field of a question or of news: {label, value}, of a seat with its `player`. It belongs to a seat, or to the middle if all were told it.

import { html } from "../lib/preact.js";
import { cardName, cardSign, capital, number, signed, spaced } from "../format.js";
import { Card, Chips } from "./cards.js";
import { Amount, Buttons } from "./moves.js";
import { blank, common, isNext, isTold, put } from "./reducer.js";
import { Felt, Result, Seat, Sign } from "./seats.js";

const NO_FACTS = new Set(["kind", "legal", "round", "seat"]); // they are shown in other ways
const CARD = /^(?:[2-9TJQKA][shdc]|[TJQKA])$/;
const CHIPS = /\b(?:ante|bank|bankroll|bet|bets|cash|chip|chips|pot|stake)\b/;
/** How many of the others sit to the left, at the top and to the right, by their number. */
const SIDES = [[0, 0, 0], [0, 1, 0], [0, 2, 0], [1, 1, 1], [1, 2, 1], [1, 3, 1], [2, 2, 2], [2, 3, 2], [2, 4, 2], [3, 3, 3]];

/** The view of a game. @param {{title: string, round: string, closes: string, follows: string[], by_seat: Record<string, string[]>, seat_fields: string[]}} game */
export function viewOf(game) {
  const start = ({ players, scores, round = 1 }) => ({ ...blank(players.length, scores), ...fresh(players.length), players, round });
  const step = (old, event) => {
    const base = isNext(old, event, game.follows) ? { ...old, ...fresh(old.players.length), round: old.round + 1 } : old;
    const state = common(base, event);
    if (event.event === "asked") return asked(state, event, game);
    if (event.event === "answered") return isTold(event) || event.text ? { ...state, says: put(state.says, event.seat, said(event, state.players)) } : state;
    return event.event === "told" ? told(state, event, game) : state;
  };
  const describe = (event, players) => {
    if (event.event === "answered") return isTold(event) ? wordsOf(event, players) : null;
    if (event.event !== "told") return null;
    return event.text ?? (event.news.kind === game.closes ? `the ${game.round} is over` : null);
  };
  const Table = (props) => html`<${GeneralTable} game=${game} ...${props} />`;
  return { start, step, describe, Table, Moves };
}

function fresh(seats) {
  return { before: Array(seats).fill([]), middle: [], asked: "", gains: null, result: "", says: Array(seats).fill(""), done: false };
}

function asked(state, { seat, question, text }, game) {
  const round = question.round ?? state.round;
  return { ...state, round, asked: text ?? "", before: put(state.before, seat, withFacts(state.before[seat], factsOf(question, game, state.players))) };
}

function told(state, event, game) {
  const { closes, by_seat: bySeat } = game;
  const { news, gains, text } = event;
  const seats = state.players.length;
  const seat = news.seat ?? event.seat ?? (seats === 1 ? 0 : null);
  const each = new Set(Object.keys(news).filter((field) => bySeat[news.kind]?.includes(field) && news[field]?.length === seats));
  const rest = factsOf(news, game, state.players).filter(({ label }) => !each.has(label));
  let next = { ...state, round: news.round ?? state.round };
  for (const field of each) {
    // What the round has brought, and the scores, stand on the plates.
    if (field === "scores") next = { ...next, scores: news.scores };
    else if (String(news[field]) !== String(gains)) next = { ...next, before: next.before.map((facts, at) => withFacts(facts, factsOf({ [one(field)]: news[field][at] }))) };
  }
  if (seat === null) next = { ...next, middle: withFacts(next.middle, rest) };
  else next = { ...next, before: put(next.before, seat, withFacts(next.before[seat], rest)) };
  if (news.seat != null && text) next = { ...next, turn: null, says: put(next.says, seat, said(event, state.players)) };
  if (news.kind !== closes) return next;
  const scores = gains && !each.has("scores") ? next.scores.map((score, at) => score + gains[at]) : next.scores;
  return { ...next, scores, gains: gains ?? null, result: text ?? "", done: true, turn: null };
}

/** The fields of a question or of news; a seat is shown by its player's name. */
function factsOf(what, { seat_fields: seatFields = [] } = {}, players = []) {
  const player = (field, value) => (seatFields.includes(field) ? players[value] : undefined);
  return Object.entries(what).filter(([field, value]) => !NO_FACTS.has(field) && value != null).map(([label, value]) => ({ label, value, player: player(label, value) }));
}

/** Facts with newer ones in their places. */
function withFacts(facts, newer) {
  const kept = facts.map((fact) => newer.find(({ label }) => label === fact.label) ?? fact);
  return [...kept, ...newer.filter(({ label }) => !facts.some((fact) => fact.label === label))];
}

/** A list by seat has one of these for each seat: "cards" → "card". */
function one(field) {
  return field.replace(/(?<=[^s])s$/, "");
}

function wordsOf(event, players) {
  return event.text ?? `${players[event.seat]}: ${readable(event.value)}`;
}

/** What a seat says, without its name. */
function said(event, players) {
  const seat = event.news?.seat ?? event.seat;
  const words = wordsOf(event, players);
  return words.startsWith(players[seat]) ? words.slice(players[seat].length).replace(/^[:\s]+/, "") : words;
}

/** Any value in words: {discard: "5h", knock: true} → "discard 5♥, knock". */
function readable(value) {
  if (value === null) return "nothing";
  if (value === true || value === false) return value ? "yes" : "no";
  if (typeof value === "number") return number(value);
  if (typeof value === "string") return CARD.test(value) ? cardSign(value) : value.replaceAll("_", " ");
  if (Array.isArray(value)) return value.map(readable).join(" ") || "nothing";
  const fields = Object.entries(value).filter(([, each]) => each !== null && each !== false);
  return fields.map(([name, each]) => (each === true ? spaced(name).toLowerCase() : `${spaced(name).toLowerCase()} ${readable(each)}`)).join(", ") || "nothing";
}

function GeneralTable({ game, state, players, turn, clock, me }) {
  const first = me ?? 0;
  const others = players.map((_, at) => (first + at) % players.length).slice(1);
  const [left, top] = SIDES[others.length] ?? [0, others.length];
  const seat = (at, place) => html`<${Player} key=${at} state=${state} players=${players} seat=${at} place=${place} clock=${turn?.seat === at ? clock : null} />`;
  const side = (name, seats) => seats.length > 0 && html`<div class=${`side ${name}`}>${seats.map((at) => seat(at, name))}</div>`;
  return html`<${Felt} game=${`general ${players.length > 4 ? "many" : players.length < 4 ? "few" : ""}`} label=${`${game.title} table`}>
    ${side("left", others.slice(0, left).reverse())}
    ${side("top", others.slice(left, left + top))}
    ${side("right", others.slice(left + top))}
    <div class="middle">
      <${Sign}>${capital(game.round)} ${number(state.round)}<//>
      <${Facts} facts=${state.middle} />
      <${Result} title=${state.done ? state.result : ""} />
    </div>
    ${side("bottom", [first])}
  <//>`;
}

function Player({ state, players, seat, place, clock }) {
  const { gains, before, says, scores, turn } = state;
  return html`<${Seat} seat=${seat} name=${players[seat]} place=${place} score=${signed(scores[seat])} turn=${turn?.seat === seat} clock=${clock}
      gain=${gains ? gains[seat] : null} says=${says[seat]}>
    <${Facts} facts=${before[seat]} who=${players[seat]} look=${gains?.[seat] > 0 ? "win" : ""} />
  <//>`;
}

function Facts({ facts, who = "", look = "" }) {
  return html`<div class="facts-here">${facts.map((fact) => html`<div class="fact" key=${fact.label}>${shown(fact, spaced(fact.label).toLowerCase(), who, look)}</div>`)}</div>`;
}

function shown({ value, player }, label, who, look) {
  const name = html`<span class="caption">${label}</span>`;
  if (player !== undefined) return html`${name} <b><bdi>${player}</bdi></b>`;
  const groups = groupsOf(value);
  if (groups) {
    return html`<div class="hand" role="group" aria-label=${who ? `${who}'s ${label}` : label}>${groups.map((cards) => html`<span class=${`group ${cards.length > 5 ? "long" : ""}`}>
      ${cards.map((card) => html`<${Card} card=${card} state=${look} label=${card ? cardName(card) : undefined} />`)}</span>`)}</div>${name}`;
  }
  if (typeof value === "number" && CHIPS.test(label)) return value > 0 ? html`<${Chips} amount=${value} label=${label} />` : html`${name} <b>${number(value)}</b>`;
  return html`${name} <b>${readable(value)}</b>`;
}

/** Cards in groups, or null if a value is something else. @returns {(string|null)[][]|null} */
function groupsOf(value) {
  const isCard = (each) => typeof each === "string" && CARD.test(each);
  const isHand = (each) => Array.isArray(each) && each.some(isCard) && each.every((card) => card === null || isCard(card));
  if (isCard(value)) return [[value]];
  if (isHand(value)) return [value];
  return Array.isArray(value) && value.length > 0 && value.every(isHand) ? value : null;
}

/** The legal moves of the person who plays: a button for each, or an amount. */
function Moves({ question, state, onAnswer, disabled = false }) {
  if (!question) return null;
  const title = state.asked ? `${capital(state.asked)}.` : "Your move.";
  const { legal } = question;
  if (!Array.isArray(legal)) {
    const { min, max } = legal;
    const quick = [{ text: "Least", amount: min, key: "l" }, ...(max > min ? [{ text: "Most", amount: max, key: "m" }] : [])];
    return html`<${Amount} range=${legal} quick=${quick} verb=${spaced(question.kind)} onAnswer=${onAnswer} disabled=${disabled} title=${title} />`;
  }
  const texts = legal.map((value) => capital(readable(value)));
  const keys = keysFor(texts);
  return html`<${Buttons} moves=${legal.map((value, at) => ({ value, text: texts[at], key: keys[at] }))} onAnswer=${onAnswer} disabled=${disabled} title=${title} />`;
}

const KEYS = [..."1234567890abcdefghijklmnopqrstuvwxyz"];

/** A key of its own for each answer: the first letter where that is free; "" when there are none left. @param {string[]} texts */
function keysFor(texts) {
  const used = new Set();
  return texts.map((text) => {
    const first = text[0].toLowerCase();
    const key = KEYS.includes(first) && !used.has(first) ? first : KEYS.find((each) => !used.has(each)) ?? "";
    used.add(key);
    return key;
  });
}
