import { loadConfig } from "../platform/config.ts";
import type { PoolItem } from "../schema/worker-api.ts";
import { type CliInput, EXIT } from "./command.ts";
import { paintStatus } from "./executions.ts";
import { listWorkers } from "./server-executions.ts";
import { serverTarget } from "./server-target.ts";
import { styleFor } from "./style.ts";
import { writeTable } from "./table.ts";
import { formatCount, formatDuration, jsonText, plural } from "./text.ts";

/** Workers that one call asks for. */
const PAGE = "500";

/** `flow workers`: who carries out the commands of a server. */
export async function showWorkers(input: CliInput): Promise<number> {
  const { options, io } = input;
  const target = await serverTarget(input, loadConfig(io.environment));
  const query = new URLSearchParams({ limit: PAGE });
  const items: PoolItem[] = [];
  for (let more: string | null = ""; more !== null; ) {
    if (more !== "") query.set("cursor", more);
    const page = await listWorkers(target, query, io.signal);
    for (const item of page.items) items.push(item);
    more = page.next_cursor;
  }
  if (options["json"] === true) {
    io.stdout.write(`${jsonText({ items })}\n`);
    return EXIT.ok;
  }
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  const paint = (cell: string, column: number) => (column === STATUS_COLUMN ? paintStatus(cell, style) : cell);
  writeTable(io.stdout, HEADINGS, items.map(rowOf), paint);
  const ready = items.filter(({ status }) => status === "ready").length;
  const hint = ready === 0 ? "; commands wait until there is one: 'flow serve --role=worker'" : "";
  io.stderr.write(`${plural(items.length, "worker")} at ${target.url}, ${ready} ready${hint}\n`);
  return EXIT.ok;
}

const HEADINGS = ["NAME", "STATUS", "CAPACITY", "RUNNING", "HEARTBEAT", "KINDS", "LABELS"];
const STATUS_COLUMN = HEADINGS.indexOf("STATUS");

function rowOf(item: PoolItem): string[] {
  const { name, status, capacity, running, heartbeat_age_ms, capabilities, labels } = item;
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${String(value)}`);
  const heartbeat = `${formatDuration(heartbeat_age_ms)} ago`;
  return [
    name,
    status,
    formatCount(capacity),
    formatCount(running),
    heartbeat,
    capabilities.join(","),
    pairs.join(","),
  ];
}
