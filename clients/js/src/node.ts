// A store in files, for Node, Deno and Bun.
import { mkdir, link, open, readdir, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Store } from "./device.js";

/**
 * A store in the folder `path`, for any number of processes. Each change is a new file with the next number, which
 * appears at once and complete, on disk. A process whose number is taken by another begins again: what it had made was
 * seen by nobody.
 */
export const fileStore = (path: string): Store => ({
  update: async (change) => {
    await mkdir(path, { recursive: true, mode: 0o700 });
    for (;;) {
      const last = Math.max(0, ...(await numbers(path)));
      const old = await readFile(join(path, `${last}`), "utf8").catch((error) => {
        if (error.code !== "ENOENT") throw error;
        return undefined;
      });
      if (old === undefined && last) continue; // a newer one has just replaced it
      const text = change(old);
      const draft = join(path, `draft-${crypto.randomUUID()}`);
      try {
        await write(draft, text);
        await link(draft, join(path, `${last + 1}`));
      } catch (error) {
        if ((error as { code?: string }).code !== "EEXIST") throw error;
        continue;
      } finally {
        await unlink(draft).catch(() => {});
      }
      const all = await numbers(path);
      if (Math.max(...all) > last + 1) {
        // Others were so much faster that our number was free again.
        await unlink(join(path, `${last + 1}`)).catch(() => {});
        continue;
      }
      const folder = await open(path);
      await folder.sync().finally(() => folder.close());
      for (const number of all) if (number <= last) await unlink(join(path, `${number}`)).catch(() => {});
      return text;
    }
  },
});

const numbers = async (path: string): Promise<number[]> =>
  (await readdir(path)).filter((name) => /^\d+$/.test(name)).map(Number);

async function write(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
