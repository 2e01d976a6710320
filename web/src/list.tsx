import { useEffect } from "preact/hooks";
import { get, type Glance, type Overview } from "./api";
import { Badge, Health, usePolled } from "./parts";
import { ago, percent, TRUST, whole } from "./words";

interface Props {
  overview: Overview | null;
  archived: boolean;
  setArchived: (archived: boolean) => void;
}

export function List({ overview, archived, setArchived }: Props) {
  useEffect(() => void (document.title = "Experiments · dpbandits"), []);
  const [all] = usePolled(() => (archived ? get<Overview>("v1/overview?archived=true") : Promise.resolve(null)), 5000, [archived]);
  const shown = (archived && all) || overview;
  return (
    <>
      <div class="head">
        <h1>Experiments</h1>
        <a class="button" href="#/new">
          New experiment
        </a>
      </div>
      {!shown ? (
        <p class="quiet">Asking the server …</p>
      ) : shown.experiments.length ? (
        <ul class="list">
          {shown.experiments.map((one) => (
            <Row key={one.name} one={one} />
          ))}
        </ul>
      ) : (
        <div class="card empty">
          <h2>No experiment yet</h2>
          <p>An experiment chooses among a few variants, learns which one people like best, and keeps what they did private.</p>
          <p class="buttons">
            <a class="button" href="#/new">
              Begin one
            </a>
            {shown.demo && (
              <a class="button second" href="demo">
                Try the demo shop
              </a>
            )}
          </p>
        </div>
      )}
      <label class="check">
        <input type="checkbox" checked={archived} onChange={(event) => setArchived(event.currentTarget.checked)} /> Show archived ones, too
      </label>
    </>
  );
}

function Row({ one }: { one: Glance }) {
  return (
    <li>
      <a class="card glance" href={`#/e/${encodeURIComponent(one.name)}`}>
        <span class="title">
          <b>{one.name}</b>
          <Badge status={one.status} />
        </span>
        <span class="fact">
          <small>privacy</small>
          {TRUST[one.trust]}
          {one.epsilon && `, epsilon ${one.epsilon}`}
        </span>
        <span class="fact">
          <small>traffic</small>
          {whole(one.decisions)} decisions, {whole(one.responses)} responses
        </span>
        <span class="fact lead">
          <small>{one.converged.converged ? "best arm, error at most 5 %" : "most traffic now"}</small>
          {one.leader ? (
            <>
              <span class="meter" aria-hidden="true">
                <i style={{ width: `${100 * (one.share ?? 0)}%` }} />
              </span>
              {one.converged.arm ?? one.leader}
              {one.share !== null && !(one.converged.arm && one.converged.arm !== one.leader) && ` ${percent(one.share)}`}
            </>
          ) : (
            "nobody came yet"
          )}
        </span>
        <span class="fact">
          <small>began {ago(one.created)}</small>
          <Health health={one.health} />
        </span>
      </a>
    </li>
  );
}
