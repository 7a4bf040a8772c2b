import type { CliOption } from "./command.ts";

/** `--json` of commands that print one object. */
export const JSON_SWITCH: CliOption = { name: "json", summary: "Print one JSON object on standard output" };

/** `--no-color`. */
export const NO_COLOR: CliOption = { name: "no-color", summary: "Use no colours (also: NO_COLOR=1)" };

/** Which server a command calls. */
export const WHICH_SERVER: readonly CliOption[] = [
  { name: "server", value: "URL", summary: "Server to call; default FLOW_SERVER_URL, else the context in use" },
  { name: "context", value: "NAME", summary: "Server to call, by its name (see 'flow context')" },
];

/** The options of most commands that call a server. */
export const SERVER_OPTIONS: readonly CliOption[] = [JSON_SWITCH, ...WHICH_SERVER];
