// Every competition there has been, the newest first.

import { html, useState } from "../lib/preact.js";
import { api, useDocument } from "../api.js";
import { href } from "../route.js";
import { Empty, Loaded, Name, Page, Panel, State, Table, competitionTitle } from "../components.js";
import { formTitle, number, time, title } from "../format.js";

const COLUMNS = [
  {
    id: "run", title: "Competition", head: true, value: (row) => competitionTitle(row).title,
    cell: (row) => html`<a href=${href("c", row.id)}><${Name} name=${competitionTitle(row).title} /></a>`,
  },
  { id: "game", title: "Game", value: (row) => title(row.game) },
  { id: "form", title: "Form", value: (row) => formTitle(row.form) },
  { id: "state", title: "State", value: (row) => row.state, cell: (row) => html`<${State} state=${row.state} />` },
  { id: "bots", title: "Bots", number: true, value: (row) => row.bots, cell: (row) => number(row.bots) },
  {
    id: "played", title: "Matches", number: true, value: (row) => row.played,
    cell: (row) => (row.scheduled && row.scheduled !== row.played ? `${number(row.played)} of ${number(row.scheduled)}` : number(row.played)),
  },
  { id: "started", title: "Started", number: true, value: (row) => row.started_at, cell: (row) => time(row.started_at) },
  { id: "finished", title: "Finished", number: true, value: (row) => row.finished_at, cell: (row) => time(row.finished_at) },
];

export default function Competitions() {
  const document = useDocument(api("competitions"), null, 10_000);
  const [game, setGame] = useState("");
  return html`<${Page} title="Competitions">
    <${Loaded} document=${document} what="the competitions">
      ${({ competitions }) => {
        const games = [...new Set(competitions.map((row) => row.game))].sort();
        const rows = game ? competitions.filter((row) => row.game === game) : competitions;
        if (!competitions.length) {
          return html`<${Empty} title="There has been no competition yet."
            text="An instructor starts one; every one is kept, with all its matches.">
            <p><a href=${href("instructor")}>To the instructor's page</a></p>
          <//>`;
        }
        return html`<${Panel} title=${`${number(rows.length)} in all`}
          side=${games.length > 1 &&
          html`<label class="row">Game
            <select value=${game} onChange=${(event) => setGame(event.target.value)}>
              <option value="">all</option>
              ${games.map((name) => html`<option value=${name}>${title(name)}</option>`)}
            </select>
          </label>`}>
          <${Table} caption="Competitions" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.id} />
        <//>`;
      }}
    <//>
  <//>`;
}
