import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readBytes } from "../../local/catalog.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/**
 * The files of documents that a command line names: a file itself, a folder's playbooks and MCP resources, each once. Throws
 * `FlowError` NOT_FOUND for a folder without any, and the signal's reason when it aborts: a large folder takes seconds.
 */
export async function documentFiles(
  targets: readonly string[],
  folder: string,
  signal: AbortSignal,
): Promise<string[]> {
  const files: string[] = [];
  for (const target of targets) {
    const path = resolve(folder, target);
    if (!(await isFolder(path, target))) {
      files.push(path);
      continue;
    }
    const below = await playbooksBelow(path, signal);
    if (below.length === 0) {
      throw new FlowError(
        "NOT_FOUND",
        `There is no playbook (*.yaml or *.yml with 'kind: Playbook') in or below ${target}`,
      );
    }
    files.push(...below);
  }
  return [...new Set(files)];
}

async function isFolder(path: string, target: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (cause) {
    throw new FlowError("FILE_UNREADABLE", `Cannot read ${target}: ${messageOf(cause)}`, { cause });
  }
}

async function playbooksBelow(folder: string, signal: AbortSignal): Promise<string[]> {
  signal.throwIfAborted();
  const entries = await readdir(folder, { withFileTypes: true });
  const files: string[] = [];
  for (const entry of entries.sort((left, right) => (left.name < right.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!entry.name.startsWith(".") && entry.name !== "node_modules")
        files.push(...(await playbooksBelow(path, signal)));
    } else if (entry.isFile() && /(?<!\.test)\.ya?ml$/.test(entry.name) && (await isPlaybook(path))) {
      files.push(path);
    }
  }
  return files;
}

/** Folders hold other YAML too (compose files, CI): a playbook states its kind, or has a workflow. */
async function isPlaybook(file: string): Promise<boolean> {
  return MARK.test(Buffer.from(await readBytes(file)).toString("utf8"));
}

const MARK = /^(?:["']?workflow["']?\s*:|["']?kind["']?\s*:\s*["']?(?:Playbook|Agent|Mcp)\b)/m;
