import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { loadPlaybook } from "../../src/language/load/load.ts";
import { FlowError } from "../../src/schema/words/errors.ts";
import type { JsonObject } from "../../src/schema/words/json.ts";

/** One version of a document. */
export interface PlayedEntry {
  path: string;
  version: number;
  catalog_id: string;
  content: string;
  kind: string;
}

/** The catalog of a playing server: in memory, with a copy of each document in a folder, for the runtime to read. */
export interface PlayedCatalog {
  register(body: JsonObject): Promise<JsonObject>;
  resource(path: string, version: string | null): JsonObject;
  /** Throws `FlowError` NOT_FOUND as `POST /api/execute` does. */
  executable(catalogId: string): PlayedEntry;
}

/** An empty catalog. */
export function createPlayedCatalog(folder: string): PlayedCatalog {
  const entries: PlayedEntry[] = [];
  return {
    async register({ content, if_changed }) {
      const text = String(content);
      const path = loadPlaybook(text, "document").playbook?.path ?? "";
      const newest = entries.findLast((entry) => entry.path === path);
      if (if_changed === true && newest?.content === text) return { ...answerOf(newest), unchanged: true };
      const catalog_id = String(entries.length + 1);
      const entry = { path, version: (newest?.version ?? 0) + 1, catalog_id, content: text, kind: "playbook" };
      entries.push(entry);
      await writeFile(join(folder, `${catalog_id}.yaml`), text);
      return answerOf(entry);
    },
    resource(path, version) {
      const found = entries.findLast(
        (entry) => entry.path === path && (version ?? String(entry.version)) === String(entry.version),
      );
      if (found === undefined) throw new FlowError("NOT_FOUND", `There is no catalog entry '${path}'`);
      return { ...found, created_at: new Date(0).toISOString(), metadata: {}, payload: {} };
    },
    executable(catalogId) {
      const entry = entries.find(({ catalog_id }) => catalog_id === catalogId);
      if (entry === undefined) throw new FlowError("NOT_FOUND", "Executable catalog entry not found");
      return entry;
    },
  };
}

function answerOf({ path, kind, catalog_id, version }: PlayedEntry): JsonObject {
  return { status: "success", path, kind, catalog_id, version, warnings: [] };
}
