import { createInterface } from "node:readline/promises";
import type { CliIo } from "../command-line/command.ts";

/** Asks a question with yes or no at the terminal; anything but a yes is a no. */
export async function isConfirmed({ stdin, stderr, signal }: CliIo, question: string): Promise<boolean> {
  if (stdin === undefined) return false;
  const reader = createInterface({ input: stdin, output: stderr });
  try {
    const answer = await reader.question(`${question} [y/N] `, { signal });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    reader.close();
  }
}
