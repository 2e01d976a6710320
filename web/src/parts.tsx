// Small things that every view uses.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Connection, type Finding, keepKey, watch } from "./api";
import { setTheme, type Theme, theme } from "./theme";

export function Card({ title, children, wide, note }: { title: string; children: ComponentChildren; wide?: boolean; note?: string }) {
  return (
    <section class={wide ? "card wide" : "card"}>
      <h2>{title}</h2>
      {note && <p class="quiet">{note}</p>}
      {children}
    </section>
  );
}

export function Badge({ status }: { status: string }) {
  return <span class={`badge ${status}`}>{status}</span>;
}

export function Health({ health }: { health: Finding[] }) {
  const warnings = health.filter((finding) => finding.level === "warning").length;
  return warnings ? (
    <span class="health warning">
      {warnings} warning{warnings > 1 ? "s" : ""}
    </span>
  ) : (
    <span class="health good">healthy</span>
  );
}

export function useConnection(): Connection {
  const [state, setState] = useState<Connection>("ok");
  useEffect(() => watch(setState), []);
  return state;
}

/** What stands above every view when the server is away, or wants a key. */
export function ConnectionBar() {
  const state = useConnection();
  return (
    <div aria-live="polite">
      {state === "away" && <p class="bar">The server does not answer. What you see is the last that was known; this page tries again by itself.</p>}
      {state === "key" && <KeyForm />}
    </div>
  );
}

function KeyForm() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <form
      class="bar"
      onSubmit={(event) => {
        event.preventDefault();
        keepKey(input.current!.value);
        dispatchEvent(new Event("newkey"));
      }}
    >
      <label>
        This server needs an API key <input ref={input} type="password" autocomplete="off" required />
      </label>
      <button>Use it until this tab is closed</button>
    </form>
  );
}

const THEMES: Theme[] = ["auto", "light", "dark"];

export function ThemeButton() {
  const [now, setNow] = useState(theme());
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]!;
  return (
    <button
      class="plain"
      aria-label={`Colours: ${now}. Change to ${next}`}
      onClick={() => {
        setTheme(next);
        setNow(next);
      }}
    >
      {now === "auto" ? "◐" : now === "light" ? "☀" : "☾"}
    </button>
  );
}

/** A button that asks before it acts. */
export function Careful({ label, question, yes, act }: { label: string; question: string; yes: string; act: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <button class="danger" onClick={() => dialog.current!.showModal()}>
        {label}
      </button>
      <dialog ref={dialog} aria-label={label}>
        <p>{question}</p>
        <div class="buttons">
          <button onClick={() => dialog.current!.close()}>Cancel</button>
          <button
            class="danger"
            onClick={() => {
              dialog.current!.close();
              act();
            }}
          >
            {yes}
          </button>
        </div>
      </dialog>
    </>
  );
}

/** Ask `load` now, and again every so often; what was shown stays while the server is away. */
export function usePolled<T>(load: () => Promise<T>, ms: number, about: unknown[]): [T | null, Error | null] {
  const [found, setFound] = useState<T | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    let ended = false;
    let timer = 0;
    const ask = async (): Promise<void> => {
      clearTimeout(timer);
      try {
        const answer = await load();
        if (ended) return;
        setFound(answer);
        setError(null);
      } catch (wrong) {
        if (!ended) setError(wrong as Error);
      }
      if (!ended) timer = window.setTimeout(ask, ms);
    };
    setFound(null);
    void ask();
    addEventListener("newkey", ask);
    return () => {
      ended = true;
      clearTimeout(timer);
      removeEventListener("newkey", ask);
    };
  }, about);
  return [found, error];
}
