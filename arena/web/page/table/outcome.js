// @ts-check
// How a match ended, in a sentence. Pure.

import { GAMES } from "../games/games.js";
import { count, list, number, signed, termination } from "../format.js";

/**
 * "expert won 2 games to 1.", "nash won 17 from random.", "ben is out: out of time."
 * @param {{game: string, players: string[], result: {scores: number[], termination: any}}} match
 */
export function outcomeText({ game, players, result: { scores, termination: end } }) {
  if (end.kind === "void") return "The match is void and counts for nobody.";
  if (end.seat != null) return `${players[end.seat]} is out: ${termination(end.kind)}.`;
  const most = Math.max(...scores);
  const first = players.filter((_, seat) => scores[seat] === most);
  if (players.length === 1) return most ? `${first[0]} ${most > 0 ? "won" : "lost"} ${number(Math.abs(most))} against the dealer.` : `${first[0]} came out even.`;
  if (first.length > 1) return players.length === 2 ? "The match is a draw." : `${list(first)} share the first place with ${signed(most)}.`;
  const others = players.map((name, seat) => ({ name, score: scores[seat] })).filter((_, seat) => scores[seat] < most);
  others.sort((one, other) => other.score - one.score);
  const { is_count: isCount = false, unit = "" } = GAMES[game] ?? {};
  if (players.length > 2) return `${first[0]} won with ${signed(most)}, before ${list(others.map(({ name, score }) => `${name} (${signed(score)})`))}.`;
  const [{ name, score }] = others;
  if (isCount) return `${first[0]} won ${unit ? count(most, unit) : number(most)} to ${number(score)}.`;
  return score === -most ? `${first[0]} won ${number(most)} from ${name}.` : `${first[0]} won, ${signed(most)} to ${signed(score)}.`;
}
