import { compileInPieces, type Program } from "../../../engine/program/program.ts";
import { FlowError } from "../../../schema/words/errors.ts";
import type { Documents } from "../../catalog/documents.ts";
import { inPieces } from "../../in-pieces.ts";

/** A compiled playbook of the catalog. */
export interface CommandProgram {
  program: Program;
  /** Its name in messages: the catalog path and version. */
  file: string;
  path: string;
  version: number;
}

/** Reads the text of a catalog entry. */
export type ReadEntry = (catalogId: string) => Promise<{ path: string; version: number; content: string } | undefined>;

/** Compiles the playbook of a catalog entry, or returns the kept program. */
export interface ProgramCache {
  (catalogId: string): Promise<CommandProgram>;
  /** The kept program, for other parts to share: this does not count as a use. */
  peek(catalogId: string): Promise<CommandProgram> | undefined;
}

/** Compiled playbooks that are kept; the least recently used is evicted. A program of 20 steps takes about 100 kB. */
const KEPT_MAX = 500;

/**
 * Compiles playbooks of the catalog, each once: an entry never changes. Compiled from the text as registered, because a
 * database's JSON type may lose the order of keys. A large playbook is read in a thread and compiled in pieces: other calls are
 * answered meanwhile. `keptMax`: how many programs are kept, default 500. Throws `FlowError` NOT_FOUND, INVALID_PLAYBOOK, and
 * UNAVAILABLE like {@link Documents.registered}.
 */
export function createProgramCache(
  read: ReadEntry,
  documents: Pick<Documents, "registered">,
  keptMax = KEPT_MAX,
): ProgramCache {
  const kept = new Map<string, Promise<CommandProgram>>();
  const program = (catalogId: string) => {
    const known = kept.get(catalogId);
    const compiled = known ?? compile(read, documents, catalogId);
    kept.delete(catalogId);
    kept.set(catalogId, compiled);
    if (known !== undefined) return compiled;
    // An entry that could not be read now may be readable later.
    compiled.catch(() => kept.delete(catalogId));
    const [oldest] = kept.keys();
    if (kept.size > keptMax && oldest !== undefined) kept.delete(oldest);
    return compiled;
  };
  return Object.assign(program, { peek: (catalogId: string) => kept.get(catalogId) });
}

async function compile(
  read: ReadEntry,
  documents: Pick<Documents, "registered">,
  catalogId: string,
): Promise<CommandProgram> {
  const entry = await read(catalogId);
  if (entry === undefined) throw new FlowError("NOT_FOUND", `There is no catalog entry ${catalogId}`);
  const file = `${entry.path}@${entry.version === 0 ? "draft" : entry.version}`;
  const program = await compileText(documents, entry.content, file);
  return { program, file, path: entry.path, version: entry.version };
}

/** Compiles a text that was found valid. `file`: its name in messages. Throws as {@link createProgramCache} does. */
export async function compileText(
  documents: Pick<Documents, "registered">,
  content: string,
  file: string,
): Promise<Program> {
  const { playbook, diagnostics } = await documents.registered(content, file);
  if (playbook !== undefined) return await inPieces(compileInPieces(playbook));
  const message = `The catalog entry ${file} is no playbook that this version can run`;
  throw new FlowError("INVALID_PLAYBOOK", message, { detail: diagnostics });
}
