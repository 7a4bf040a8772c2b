import { resolve } from "node:path";
import { readBytes } from "../../local/catalog.ts";
import type { Config } from "../../platform/config/config.ts";
import { type CliValues, textOption } from "../command-line/command.ts";

/**
 * The credentials file of a run or a plan: the one that `--credentials` names, else that of FLOW_CREDENTIALS_FILE. Throws
 * `FlowError` FILE_UNREADABLE for one that was named here and cannot be read: a mistake to be told now, not when a task
 * asks for it.
 */
export async function credentialsFile(config: Config, options: CliValues, folder: string): Promise<string | undefined> {
  const named = textOption(options, "credentials");
  if (named === undefined) return config.credentialsFile;
  const file = resolve(folder, named);
  await readBytes(file);
  return file;
}
