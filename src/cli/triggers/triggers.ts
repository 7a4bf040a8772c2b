import { TRIGGER_ROUTES } from "../../schema/routes/triggers.ts";
import type { FireItem, TriggerItem } from "../../schema/triggers/answers.ts";
import type { DeliveryItem } from "../../schema/triggers/deliveries.ts";
import type { FireStatus, TriggerKind } from "../../schema/triggers/trigger.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { type CommandServer, openServer } from "../server/open-server.ts";
import { fitToTerminal, writeTable } from "../terminal/table.ts";
import { cleanText, jsonText } from "../terminal/text.ts";

/** Fires and deliveries that a list shows where no limit is given. */
const FIRES_SHOWN = 20;

/** `flow triggers list`. */
export const listTriggers: CliAction = async (input) => {
  const { options, io } = input;
  const server = await openServer(input);
  const kind = textOption(options, "kind") as TriggerKind | undefined;
  const enabled = options["disabled"] === true ? ("false" as const) : undefined;
  const query = defined({ path: textOption(options, "path"), kind, enabled });
  const triggers = await server.all(TRIGGER_ROUTES.list, { query }, (page) => page.triggers);
  if (options["json"] === true) return answer(input, { triggers });
  if (triggers.length === 0) io.stdout.write("No triggers\n");
  else {
    const headings = ["TRIGGER", "PLAYBOOK", "NAME", "KIND", "ON", "LAST FIRE", "NEXT FIRE"];
    writeTable(io.stdout, headings, triggers.map(rowOf), fitToTerminal(io, ["PLAYBOOK", "NAME"]));
  }
  return EXIT.ok;
};

function rowOf({ trigger_id: id, path, name, kind, enabled, last_fire, next_fire }: TriggerItem): string[] {
  return [id, path, name, kind, enabled ? "yes" : "no", last_fire ?? "-", next_fire ?? "-"];
}

/** The commands about one trigger, by their names. */
export const TRIGGER_ACTIONS = {
  show: aboutOne(async (input, server, params) => {
    const shown = await server.call(TRIGGER_ROUTES.detail, { params });
    if (input.options["json"] === true) return answer(input, shown);
    const { path, name, kind, document, version, enabled, overlap, catchup, section } = shown;
    const lines = [
      `${name} of ${path} (${kind}), from ${document} version ${version}`,
      `${enabled ? "on" : "turned off"}, last fire ${shown.last_fire ?? "none"}, next fire ${shown.next_fire ?? "none"}`,
      `overlap ${overlap}, catch-up ${catchup.mode}`,
      `${kind}: ${JSON.stringify(section)}`,
      `input: ${JSON.stringify(shown.input)}`,
    ];
    input.io.stdout.write(lines.map((line) => `${cleanText(line)}\n`).join(""));
    return EXIT.ok;
  }),
  enable: aboutOne((input, server, params) => change(input, server, params, "enable")),
  disable: aboutOne((input, server, params) => change(input, server, params, "disable")),
  fire: aboutOne(async (input, server, params) => {
    const key = textOption(input.options, "key");
    const headers = key === undefined ? {} : { headers: { "idempotency-key": key } };
    const fired = await server.call(TRIGGER_ROUTES.fire, { params, body: {}, ...headers });
    const { status, execution_id: id, reason } = fired;
    if (input.options["json"] === true) answer(input, fired);
    else
      input.io.stdout.write(
        `${cleanText(id === undefined ? `${status}: ${reason ?? "it waits"}` : `${status} execution ${id}`)}\n`,
      );
    return status === "failed" ? EXIT.failed : EXIT.ok;
  }),
  next: aboutOne(async (input, server, params) => {
    const { options, io } = input;
    const query = defined({ n: textOption(options, "number"), from: textOption(options, "from") });
    const times = await server.call(TRIGGER_ROUTES.next, { params, query });
    if (options["json"] === true) return answer(input, times);
    io.stdout.write(times.next.length === 0 ? "It has no further times\n" : times.next.map((at) => `${at}\n`).join(""));
    return EXIT.ok;
  }),
  fires: aboutOne(async (input, server, params) => {
    const { options, io } = input;
    const status = textOption(options, "status") as FireStatus | undefined;
    const limit = Number(textOption(options, "limit") ?? FIRES_SHOWN);
    const query = defined({ status });
    const { items } = await server.first(TRIGGER_ROUTES.fires, { params, query }, (page) => page.fires, limit);
    if (options["json"] === true) return answer(input, { fires: items });
    if (items.length === 0) io.stdout.write("No fires\n");
    else
      writeTable(
        io.stdout,
        ["DUE", "STATUS", "EXECUTION", "REASON"],
        items.map(fireRow),
        fitToTerminal(io, ["REASON"]),
      );
    return EXIT.ok;
  }),
  deliveries: aboutOne(async (input, server, params) => {
    const { options, io } = input;
    const limit = Number(textOption(options, "limit") ?? FIRES_SHOWN);
    const query = options["refused"] === true ? { refused: "true" as const } : {};
    const { items } = await server.first(
      TRIGGER_ROUTES.deliveries,
      { params, query },
      (page) => page.deliveries,
      limit,
    );
    if (options["json"] === true) return answer(input, { deliveries: items });
    if (items.length === 0) io.stdout.write("No deliveries\n");
    else {
      const headings = ["CAME", "VERDICT", "FROM", "BYTES", "EXECUTION", "REASON"];
      writeTable(io.stdout, headings, items.map(deliveryRow), fitToTerminal(io, ["REASON"]));
    }
    return EXIT.ok;
  }),
} as const satisfies Record<string, CliAction>;

function fireRow({ due_at: due, status, execution_id: id, reason }: FireItem): string[] {
  return [due, status, id ?? "-", reason ?? ""];
}

function deliveryRow({ at, verdict, count, address, bytes, execution_id: id, reason }: DeliveryItem): string[] {
  const words = verdict.replace("_", " ");
  const told = count === 1 ? words : `${words}, ${count} like this`;
  return [at, told, address ?? "-", bytes === undefined ? "-" : String(bytes), id ?? "-", reason ?? ""];
}

type Parameters = { trigger_id: string };

/** A command that finds its trigger first. */
function aboutOne(run: (input: CliInput, server: CommandServer, params: Parameters) => Promise<number>): CliAction {
  return async (input) => {
    const server = await openServer(input);
    return await run(input, server, { trigger_id: await triggerIdOf(input, server) });
  };
}

/** The trigger that the command line names: by its id, or by its playbook and its name. Throws `FlowError` NOT_FOUND, USAGE. */
export async function triggerIdOf({ arguments: words }: CliInput, server: CommandServer): Promise<string> {
  const [first = "", name] = words;
  if (name === undefined && /^\d+$/.test(first)) return first;
  const query = { path: first, ...defined({ name }) };
  const found = await server.all(TRIGGER_ROUTES.list, { query }, (page) => page.triggers);
  const [one, ...others] = found;
  if (one === undefined) {
    const what = name === undefined ? `no trigger of '${first}'` : `no trigger '${name}' of '${first}'`;
    throw new FlowError("NOT_FOUND", `There is ${what}. 'flow triggers list' shows them`);
  }
  if (others.length === 0) return one.trigger_id;
  const names = found.map((trigger) => `'${trigger.name}'`).join(", ");
  throw new FlowError("USAGE", `'${first}' has several triggers: give the name too, one of ${names}`);
}

async function change(
  input: CliInput,
  server: CommandServer,
  params: Parameters,
  what: "enable" | "disable",
): Promise<number> {
  const changed = await server.call(TRIGGER_ROUTES[what], { params, body: {} });
  if (input.options["json"] === true) return answer(input, changed);
  const next = changed.next_fire === null ? "" : `, next fire ${changed.next_fire}`;
  input.io.stdout.write(
    `${cleanText(`${changed.name} of ${changed.path} is ${changed.enabled ? "on" : "turned off"}${next}`)}\n`,
  );
  return EXIT.ok;
}

function answer({ io }: CliInput, value: unknown): number {
  io.stdout.write(`${jsonText(value)}\n`);
  return EXIT.ok;
}
