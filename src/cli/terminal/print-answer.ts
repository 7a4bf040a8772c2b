import { type CliInput, EXIT } from "../command-line/command.ts";
import { cleanText, jsonText } from "./text.ts";

/** Prints one line, or with `--json` the server's answer; returns the exit code of success. */
export function printAnswer({ options, io }: CliInput, answer: unknown, text: string): number {
  io.stdout.write(options["json"] === true ? `${jsonText(answer)}\n` : `${cleanText(text)}\n`);
  return EXIT.ok;
}

/** Prints the server's answer; returns the exit code of success. */
export function printJson({ io }: CliInput, answer: unknown): number {
  io.stdout.write(`${jsonText(answer)}\n`);
  return EXIT.ok;
}
