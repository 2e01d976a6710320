import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, type Overview } from "./api";
import { Create } from "./create";
import { ExperimentPage } from "./experiment";
import { List } from "./list";
import { ConnectionBar, ThemeButton, usePolled } from "./parts";
import "./style.css";
import { show } from "./theme";

const route = (): string => decodeURIComponent(location.hash.replace(/^#\/?/, ""));

function App() {
  const [path, setPath] = useState(route);
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    const moved = (): void => {
      setPath(route());
      scrollTo(0, 0);
      main.current?.focus();
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const inList = path === "";
  const [overview] = usePolled(() => get<Overview>("v1/overview"), inList ? 2000 : 30_000, [inList]);
  const [archived, setArchived] = useState(false);
  const name = path.startsWith("e/") ? path.slice(2) : null;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <header>
        <a class="brand" href="#/">
          <img src="./icon.svg" alt="" width="24" height="24" /> dpbandits
        </a>
        <nav aria-label="Main">
          <a href="#/" aria-current={inList ? "page" : undefined}>
            Experiments
          </a>
          <a href="#/new" aria-current={path === "new" ? "page" : undefined}>
            New
          </a>
          {overview?.demo && <a href="demo">Demo shop</a>}
          <a href="docs">API</a>
        </nav>
        <ThemeButton />
      </header>
      <ConnectionBar />
      <main ref={main} id="main" tabIndex={-1}>
        {name !== null ? (
          <ExperimentPage key={name} name={name} />
        ) : path === "new" ? (
          <Create />
        ) : (
          <List overview={overview} archived={archived} setArchived={setArchived} />
        )}
      </main>
    </>
  );
}

show();
render(<App />, document.getElementById("app")!);
