// What bots won without luck, beside what they won: of a competition, of two bots, of a match.

import { html } from "../lib/preact.js";
import { BotLink, Chart, Mean, Panel, Table } from "../components.js";
import { GAMES } from "../games/games.js";
import { count, number, signed } from "../format.js";

const DIGITS = 3;

/** The bots of a competition, best first; nothing before it is known and may be seen. */
export function Luck({ competition }) {
  const rows = Object.entries(competition.luck ?? {}).map(([name, line]) => ({ name, ...line }));
  if (!rows.length) return null;
  rows.sort((a, b) => b.mean - a.mean);
  const figure = (id, title, cell) => ({ id, title, number: true, value: (row) => row[id], cell });
  const columns = [
    { id: "name", title: "Bot", head: true, value: (row) => row.name, cell: (row) => html`<${BotLink} competition=${competition.id} name=${row.name} />` },
    figure("matches", "Matches", (row) => number(row.matches)),
    figure("gain", "Won", (row) => signed(row.gain, DIGITS)),
    figure("mean", "Without luck", (row) => html`<${Mean} mean=${row.mean} interval=${row.interval} say=${signed} digits=${DIGITS} />`),
  ];
  return html`<${Panel} title="Without luck">
    <${Table} caption="What bots won, and what they won without luck" columns=${columns} rows=${rows} keyOf=${(row) => row.name} />
    <p class="faint small">In ${competition.luck_unit}s per match. Without luck: the score minus what the cards gave the bot beyond average cards. It ranks nobody. […]: 95 % intervals, made so that at most 1 in 20 such ranges is wrong.</p>
  <//>`;
}

/** The curves of a match, of a seat or else of the one that has won most. @param {{document: any, of?: number|null}} props */
export function MatchLuck({ document: { game, luck, players, result }, of = null }) {
  if (!luck || luck.after.length < 2) return null;
  const seat = of ?? result.scores.indexOf(Math.max(...result.scores));
  const last = luck.after.length - 1;
  const round = GAMES[game]?.unit || "round"; // what luck is measured by
  const series = [
    { title: "won", y: luck.gains.map((by) => by[seat]) },
    { title: "without luck", y: luck.without.map((by) => by[seat]) },
  ];
  const [won, without] = [luck.gains[last][seat], luck.without[last][seat]].map((value) => signed(value, 2));
  const label = `${players[seat]} after ${count(luck.after[last], round)}, in ${luck.unit}s: ${won} won, ${without} without luck`;
  return html`<${Panel} title="Won, and won without luck"><${Chart} label=${label} x=${luck.after} series=${series} xTitle=${`${round}s`} height=${200} /><//>`;
}
