// The elimination as a bracket: a column for each stage, a box for each table, lines for those who went on.
// Tables are drawn anew for each stage, so lines cross: the way of the bot that is pointed at stands out.

import { html, useLayoutEffect, useRef, useState } from "../lib/preact.js";
import { href } from "../route.js";
import { BotLink, Empty, Name, Panel, State } from "../components.js";
import { count, signed } from "../format.js";

/** @param {{competition: any}} props  a competition's document */
export function Bracket({ competition }) {
  const [way, setWay] = useState(null);
  const field = useRef(null);
  const stages = competition.bracket;
  if (!stages.length) {
    // The line above the tabs says why.
    if (competition.missing) return html`<${Empty} title="The tables cannot be drawn without the game's rules." text="Its matches and its ranking are here." />`;
    return html`<${Empty} title="The first tables have not been drawn yet." text="They are as soon as the elimination starts." />`;
  }
  const pointed = (event) => setWay(event.target.closest?.("[data-name]")?.dataset.name ?? null);
  const final = competition.ranking.length > 0 && competition.ranking;
  return html`<${Panel} title="Bracket">
    <p class="faint small">Point at a bot to see its way. ${stages.some((stage) => stage.byes.length) && "A bye goes on without playing."}</p>
    <div class="wide" tabindex="0" role="region" aria-label="Bracket" onMouseOver=${pointed} onMouseLeave=${() => setWay(null)} onfocusin=${pointed}>
      <div class="bracket" ref=${field}>
        <${Lines} field=${field} stages=${stages} way=${way} />
        ${stages.map(
          (stage) => html`<section class="stage" key=${stage.stage} aria-label=${stageTitle(stage)}>
            <h3>${stageTitle(stage)}</h3>
            <div class="tables">
              ${stage.tables.map((table) => html`<${TableBox} key=${table.pairing} competition=${competition.id} table=${table} way=${way} />`)}
              ${stage.byes.length > 0 && html`<${Byes} competition=${competition.id} byes=${stage.byes} way=${way} />`}
            </div>
          </section>`,
        )}
        ${final && html`<${Places} competition=${competition} ranking=${final} way=${way} />`}
      </div>
    </div>
  <//>`;
}

function stageTitle(stage) {
  const players = stage.tables.reduce((sum, table) => sum + table.players.length - table.house.length, 0) + stage.byes.length;
  return stage.final ? "Final" : `Stage ${stage.stage} · ${count(players, "bot")}`;
}

function TableBox({ competition, table, way }) {
  const { players, scores, advanced, out, house, offender } = table;
  const best = scores ? players.map((_, seat) => seat).sort((a, b) => scores[b] - scores[a]) : players.map((_, seat) => seat);
  return html`<article class=${`box ${table.state}`}>
    <p class="about small">
      ${table.match ? html`<a href=${href("m", table.match)}>table ${table.pairing}</a>` : html`<span class="faint">table ${table.pairing}</span>`}
      ${table.state !== "over" && html`<${State} state=${table.state} />`}
    </p>
    <ul>
      ${best.map((seat) => {
        const name = players[seat];
        const through = advanced?.includes(name);
        const gone = out?.includes(name) || (advanced && !through);
        const blamed = offender === seat;
        const look = [through ? "through" : "", gone ? "gone" : "", way === name ? "way" : ""].join(" ");
        return html`<li class=${look} data-name=${house.includes(name) ? null : name} key=${name}>
          <span class="tick" aria-label=${through ? "advances" : blamed ? "out by an offence" : gone ? "is out" : null} role=${advanced || blamed ? "img" : null}>${through ? "✓" : blamed ? "✕" : ""}</span>
          ${house.includes(name) ? html`<span class="faint"><${Name} name=${name} /></span>` : html`<${BotLink} competition=${competition} name=${name} />`}
          <span class="score">${scores ? signed(scores[seat]) : ""}</span>
        </li>`;
      })}
    </ul>
  </article>`;
}

function Byes({ competition, byes, way }) {
  return html`<article class="box byes">
    <p class="about small faint">${byes.length === 1 ? "bye" : "byes"}</p>
    <ul>
      ${byes.map((name) => html`<li class=${`through ${way === name ? "way" : ""}`} data-name=${name}>
        <span class="tick" role="img" aria-label="goes on without playing">→</span><${BotLink} competition=${competition} name=${name} /><span></span>
      </li>`)}
    </ul>
  </article>`;
}

function Places({ competition, ranking, way }) {
  const first = ranking.filter((place) => place.rank <= 4);
  return html`<section class="stage places" aria-label="Places">
    <h3>Places</h3>
    <div class="tables">
      <article class="box">
        <ol>
          ${first.map((place) =>
            place.names.slice(0, 12).map(
              (name) => html`<li class=${`${place.rank === 1 ? "through" : ""} ${way === name ? "way" : ""}`} data-name=${name}>
                <span class="tick">${place.rank}.</span><${BotLink} competition=${competition.id} name=${name} version=${competition.versions[name]} /><span class="score">${place.score === null ? "" : signed(place.score)}</span>
              </li>`,
            ),
          )}
        </ol>
      </article>
    </div>
  </section>`;
}

/** The lines between the columns, measured when the boxes stand; they are a picture only, the boxes say it in words. */
function Lines({ field, stages, way }) {
  const [lines, setLines] = useState({ width: 0, height: 0, paths: [] });
  useLayoutEffect(() => {
    const measure = () => setLines(measured(field.current));
    measure();
    const sized = new ResizeObserver(measure);
    sized.observe(field.current);
    return () => sized.disconnect();
  }, [stages]);
  return html`<svg class="ways" width=${lines.width} height=${lines.height} aria-hidden="true">
    ${lines.paths.map(({ name, d }) => html`<path d=${d} class=${way === name ? "way" : ""} key=${name + d} />`)}
  </svg>`;
}

function measured(field) {
  const origin = field.getBoundingClientRect();
  const columns = [...field.querySelectorAll(".stage")].map(
    (stage) => new Map([...stage.querySelectorAll("[data-name]")].map((item) => [item.dataset.name, item.getBoundingClientRect()])),
  );
  const paths = [];
  for (let index = 0; index + 1 < columns.length; index += 1) {
    for (const [name, from] of columns[index]) {
      const to = columns[index + 1].get(name);
      if (!to) continue;
      const [x1, y1] = [from.right - origin.left, from.top + from.height / 2 - origin.top];
      const [x2, y2] = [to.left - origin.left, to.top + to.height / 2 - origin.top];
      const middle = (x1 + x2) / 2;
      paths.push({ name, d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}` });
    }
  }
  return { width: field.scrollWidth, height: field.scrollHeight, paths };
}
