import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { SavedPayload } from "../../local/results.ts";
import { messageOf } from "../../schema/words/errors.ts";
import { placeOfArtifact } from "../../schema/words/result.ts";
import type { CliIo } from "../command-line/command.ts";
import { cleanText } from "../terminal/text.ts";

/** Folder for files of runs here, within the folder of the command. */
const FOLDER = join(".flow", "artifacts");

/**
 * Keeps the files that tasks of a run here store: below `.flow/artifacts/<execution>/<step>/`, and says where each is. A file that cannot be
 * written is a warning, as nothing of the run reads it from there.
 */
export function keepArtifacts(io: CliIo): (payload: SavedPayload) => void {
  const written = new Set<string>();
  return ({ ref, file, bytes }) => {
    const place = file === undefined ? undefined : placeOfArtifact(ref);
    if (file === undefined || place === undefined) return;
    const { executionId, step, run, name } = place;
    const folder = resolve(io.folder, FOLDER, executionId, segment(step));
    // Iterations of a loop may use one name each.
    const parts = name.split("/").map(segment);
    const usual = join(folder, ...parts);
    const path = written.has(usual) ? join(folder, segment(run), ...parts) : usual;
    written.add(path);
    try {
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, file);
      io.stderr.write(`${cleanText(`file: ${relative(io.folder, path)} (${bytes.toLocaleString("en")} bytes)`)}\n`);
    } catch (error) {
      io.stderr.write(`${cleanText(`warning: the file ${name} was not written: ${messageOf(error)}`)}\n`);
    }
  };
}

/** A name as one segment of a path: it leads nowhere else, whatever stands in it. */
function segment(name: string): string {
  return name.replaceAll(/[/\\:*?"<>|\p{Cc}]/gu, "_").replace(/^\.+$/, (dots) => "_".repeat(dots.length));
}
