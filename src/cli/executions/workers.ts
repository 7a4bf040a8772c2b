import { loadConfig } from "../../platform/config/config.ts";
import type { PoolItem } from "../../schema/api/workers.ts";
import { RUNNABLE_KINDS } from "../../schema/words/playbook.ts";
import { type CliInput, EXIT } from "../command-line/command.ts";
import { listWorkers } from "../server/executions-api.ts";
import { serverTarget } from "../server/target.ts";
import { styleFor } from "../terminal/style.ts";
import { fitToTerminal, writeTable } from "../terminal/table.ts";
import { formatAgo, formatCount, formatDuration, jsonText, labelText, plural } from "../terminal/text.ts";
import { paintStatus } from "./executions.ts";

/** `flow workers`: the workers of a server. */
export async function showWorkers(input: CliInput): Promise<number> {
  const { options, io } = input;
  const target = await serverTarget(input, loadConfig(io.environment));
  const items = await listWorkers(target, io.signal);
  if (options["json"] === true) {
    io.stdout.write(`${jsonText({ items })}\n`);
    return EXIT.ok;
  }
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  const { headings, shrink, rowOf } = options["wide"] === true ? WIDE : NARROW;
  const statusColumn = headings.indexOf("STATUS");
  writeTable(io.stdout, headings, items.map(rowOf), {
    paint: (cell, column) => (column === statusColumn ? paintStatus(cell, style) : cell),
    ...fitToTerminal(io, shrink),
  });
  const ready = items.filter(({ status }) => status === "ready").length;
  const hint = ready === 0 ? "; commands wait until there is one: 'flow serve --role=worker'" : "";
  io.stderr.write(`${plural(items.length, "worker")} at ${target.url}, ${ready} ready${hint}\n`);
  const open = items.filter((item) => item.status === "ready" && isolationOf(item).startsWith("none"));
  if (open.length > 0) {
    const names = open.map(({ name }) => name).join(", ");
    io.stderr.write(`without a sandbox for the code of tasks: ${names} ('flow workers --wide' says why)\n`);
  }
  return EXIT.ok;
}

/** Columns of the list, and those that are cut where there is no room, the first one first. */
interface TableLayout {
  headings: readonly string[];
  shrink: readonly string[];
  rowOf(item: PoolItem): string[];
}

const NARROW: TableLayout = {
  headings: ["NAME", "STATUS", "BUSY", "HEARD OF", "LABELS", "KINDS"],
  shrink: ["KINDS", "LABELS", "NAME"],
  rowOf(item) {
    const { name, status, capacity, running, heartbeat_age_ms: ageMs, capabilities } = item;
    const busy = `${formatCount(running)}/${formatCount(capacity)}`;
    const isAll = RUNNABLE_KINDS.every((kind) => capabilities.includes(kind));
    return [name, status, busy, formatAgo(-ageMs, 0), labelText(item.labels), isAll ? "all" : capabilities.join(",")];
  },
};

const WIDE: TableLayout = {
  headings: ["NAME", "STATUS", "CAPACITY", "RUNNING", "HEARTBEAT", "KINDS", "LABELS", "ISOLATION"],
  shrink: [],
  rowOf(item) {
    const { name, status, capacity, running, heartbeat_age_ms, capabilities } = item;
    const heartbeat = `${formatDuration(heartbeat_age_ms)} ago`;
    const counts = [formatCount(capacity), formatCount(running)];
    return [name, status, ...counts, heartbeat, capabilities.join(","), labelText(item.labels), isolationOf(item)];
  },
};

/** What keeps the code of tasks apart from the worker, by its own word. */
function isolationOf({ runtime }: PoolItem): string {
  return typeof runtime["isolation"] === "string" ? runtime["isolation"] : "unknown";
}
