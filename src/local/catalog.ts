import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { compileProgram } from "../engine/program/program.ts";
import { plainPath } from "../language/document/catalog-path.ts";
import { loadPlaybook } from "../language/load/load.ts";
import { nearest } from "../language/words/nearest.ts";
import type { Diagnostic } from "../schema/words/diagnostic.ts";
import { FlowError, messageOf } from "../schema/words/errors.ts";
import type { CommandProgram } from "../worker/deps.ts";

/** A playbook that was found and is valid. */
export interface LocalPlaybook extends CommandProgram {
  warnings: Diagnostic[];
}

/** Folders that are never searched for documents. */
const SKIPPED = new Set(["node_modules", "dist"]);
/** Documents looked at in one search by catalog path; a folder with more is no folder of playbooks. */
const SEARCHED_MAX = 5_000;

/** Reads playbooks from files, each once: a loop that calls the same child a thousand times compiles it once. */
export function createFileCatalog(): {
  load(target: string, folder: string, signal?: AbortSignal): Promise<LocalPlaybook>;
} {
  const loaded = new Map<string, Promise<LocalPlaybook>>();
  /** File by folder and target: the search for a catalog path reads every document on its way. */
  const found = new Map<string, string>();
  return {
    /**
     * Finds a playbook by file path relative to `folder`, with or without ending, else by its `metadata.path` among the
     * documents below `folder`. Throws `FlowError` NOT_FOUND, FILE_UNREADABLE, or INVALID_PLAYBOOK with all diagnostics
     * as its detail; the signal's reason when it is aborted during the search.
     */
    async load(target, folder, signal) {
      const place = JSON.stringify([folder, target]);
      const file =
        found.get(place) ??
        (await findFile(target, folder)) ??
        (await findBelow(folder, (path) => hasPath(path, target), signal));
      if (file === undefined) {
        const near = await nearFile(target, folder);
        throw new FlowError(
          "NOT_FOUND",
          `There is no playbook '${target}': no such file in ${shown(folder)}, and no document below it has that metadata.path${near}`,
        );
      }
      found.set(place, file);
      let entry = loaded.get(file);
      if (entry === undefined) {
        entry = readPlaybookFile(file);
        loaded.set(file, entry);
      }
      return await entry;
    },
  };
}

async function readPlaybookFile(file: string): Promise<LocalPlaybook> {
  const name = shown(file);
  const { playbook, diagnostics } = loadPlaybook(await readBytes(file), name);
  if (playbook !== undefined) return { program: compileProgram(playbook), file, warnings: diagnostics };
  const errors = diagnostics.filter((diagnostic) => diagnostic.severity === "error").length;
  throw new FlowError("INVALID_PLAYBOOK", `${name} has ${errors} ${errors === 1 ? "error" : "errors"}`, {
    detail: diagnostics,
  });
}

/** Reads a file. Throws `FlowError` FILE_UNREADABLE that names it. */
export async function readBytes(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new FlowError("FILE_UNREADABLE", `Cannot read ${shown(file)}: ${messageOf(cause)}`, { cause });
  }
}

/** A path as people know it: relative to where they stand when that is shorter. */
export function shown(file: string): string {
  const short = relative(process.cwd(), file);
  return short !== "" && !short.startsWith("..") ? short : file;
}

async function findFile(target: string, folder: string): Promise<string | undefined> {
  for (const ending of ["", ".yaml", ".yml"]) {
    const file = resolve(folder, `${target}${ending}`);
    const found = await stat(file).catch(() => undefined);
    if (found?.isFile()) return file;
  }
  return undefined;
}

/** "; did you mean …" when a document beside the missing one is called nearly the same. */
async function nearFile(target: string, folder: string): Promise<string> {
  const beside = dirname(resolve(folder, target));
  const files = (await readdir(beside).catch(() => [])).filter((name) => /\.ya?ml$/.test(name));
  const wanted = basename(target);
  const near = nearest(wanted, files) ?? nearest(`${wanted}.yaml`, files);
  return near === undefined ? "" : `; did you mean '${join(dirname(target), near)}'?`;
}

/**
 * The first document below the folder that is meant, in the order of names, the nearer ones first; undefined for none. Throws the
 * signal's reason.
 */
export async function findBelow(
  folder: string,
  isMeant: (file: string) => Promise<boolean>,
  signal?: AbortSignal,
): Promise<string | undefined> {
  let looked = 0;
  const folders = [folder];
  for (let next = folders.shift(); next !== undefined; next = folders.shift()) {
    const entries = await readdir(next, { withFileTypes: true }).catch(() => []);
    signal?.throwIfAborted();
    for (const entry of entries.sort((left, right) => left.name.localeCompare(right.name))) {
      const path = join(next, entry.name);
      if (entry.isDirectory() && !entry.name.startsWith(".") && !SKIPPED.has(entry.name)) folders.push(path);
      if (!entry.isFile() || !/\.ya?ml$/.test(entry.name)) continue;
      looked += 1;
      if (looked > SEARCHED_MAX) return undefined;
      if (await isMeant(path)) return path;
    }
  }
  return undefined;
}

/** Looks at the text first: parsing every document of a folder to find one would take a second for a few hundred. */
async function hasPath(file: string, target: string): Promise<boolean> {
  const text = await readFile(file, "utf8").catch(() => "");
  const wanted = plainPath(target);
  if (!text.includes(wanted)) return false;
  const { playbook } = loadPlaybook(text, file);
  if (playbook !== undefined) return playbook.path === wanted;
  // An invalid document is found too, so that its errors are reported instead of "not found".
  const spellings = [wanted, target].flatMap((path) => [path, `"${path}"`, `'${path}'`]);
  return text.split("\n").some((line) => {
    const [key, value] = line.trim().split(/:(.*)/s);
    return key === "path" && value !== undefined && spellings.includes(value.trim());
  });
}

/** Folder against which a document's own references are resolved. */
export function folderOf(file: string): string {
  return dirname(resolve(file));
}
