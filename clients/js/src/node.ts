// A store in files, for Node, Deno and Bun.
import { mkdir, link, open, readdir, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Store } from "./device.js";

const REMEMBERED = 100; // changes of which a file holds the ids

/**
 * A store in the folder `path`, for any number of processes. Each change is a new file with the next number, which
 * appears at once and complete, on disk. A process whose number is taken by another begins again: what it had made was
 * seen by nobody. The first line of a file holds the ids of the last changes. Files that vanish while the store is in
 * use are not made again: what was spent would be forgotten.
 */
export function fileStore(path: string): Store {
  let used = false;
  const update: Store["update"] = async (change) => {
    if (!used) await mkdir(path, { recursive: true, mode: 0o700 });
    for (;;) {
      const [last, ids, old] = await newest(path);
      if (used && !last) throw new RangeError("store has vanished");
      const text = change(old);
      const id = crypto.randomUUID();
      const draft = join(path, `draft-${id}`);
      try {
        await write(draft, `${[id, ...ids].slice(0, REMEMBERED).join(" ")}\n${text}`);
        await link(draft, join(path, `${last + 1}`));
      } catch (error) {
        if (codeOf(error) !== "EEXIST") throw error;
        continue;
      } finally {
        await unlink(draft).catch(() => {});
      }
      // Files that are replaced are removed. So a number may be free although others are far ahead: then nobody has
      // built on ours, and we begin again.
      const [most, since] = await newest(path);
      if (!since.includes(id)) {
        if (most > last + REMEMBERED) throw new Error("store is changed too fast to know what was kept");
        await unlink(join(path, `${last + 1}`)).catch(() => {});
        continue;
      }
      const folder = await open(path);
      await folder.sync().finally(() => folder.close());
      for (const number of await numbers(path)) if (number <= last) await unlink(join(path, `${number}`)).catch(() => {});
      used = true;
      return text;
    }
  };
  return { update };
}

const codeOf = (error: unknown): string | undefined => (error as { code?: string }).code;

const numbers = async (path: string): Promise<number[]> =>
  (await readdir(path)).filter((name) => /^\d+$/.test(name)).map(Number);

// The number, the ids and the text of the newest file.
async function newest(path: string): Promise<[number, string[], string | undefined]> {
  for (;;) {
    const last = Math.max(0, ...(await numbers(path)));
    if (!last) return [0, [], undefined];
    try {
      const content = await readFile(join(path, `${last}`), "utf8");
      const end = content.indexOf("\n");
      if (end < 0) throw new RangeError("store is damaged");
      return [last, content.slice(0, end).split(" "), content.slice(end + 1)];
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error; // a newer one has just replaced it
    }
  }
}

async function write(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
