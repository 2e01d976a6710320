// Light, dark, or as the system says.

export type Theme = "auto" | "light" | "dark";
const NAME = "dpbandits-theme";

export function theme(): Theme {
  try {
    return (localStorage.getItem(NAME) as Theme) ?? "auto";
  } catch {
    return "auto";
  }
}

export function setTheme(to: Theme): void {
  try {
    localStorage.setItem(NAME, to);
  } catch {
    // it holds until the page is left
  }
  show(to);
}

export function show(to = theme()): void {
  if (to === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = to;
  dispatchEvent(new Event("themechange"));
}

/** Call `changed` whenever colours change; the result ends that. */
export function onTheme(changed: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  addEventListener("themechange", changed);
  system.addEventListener("change", changed);
  return () => {
    removeEventListener("themechange", changed);
    system.removeEventListener("change", changed);
  };
}

/** Colours of the style sheet, as they are now within an element. */
export function colours(within: HTMLElement, names: string[]): string[] {
  const probe = within.appendChild(document.createElement("i"));
  const style = getComputedStyle(probe);
  const found = names.map((name) => {
    probe.style.color = `var(--${name})`;
    return style.color;
  });
  probe.remove();
  return found;
}

export const COLOURS = 8;
export const armColour = (arm: number): string => `var(--arm${arm % COLOURS})`;
