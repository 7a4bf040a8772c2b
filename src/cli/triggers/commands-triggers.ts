import { FIRE_STATUSES, TRIGGER_KINDS } from "../../schema/triggers/trigger.ts";
import type { CliArgument, CliCommand, CliCommandSet, CliEntry, CliOption } from "../command-line/command.ts";
import { SERVER_OPTIONS } from "../command-line/common-options.ts";

const WHICH: readonly CliArgument[] = [
  { name: "trigger|path", summary: "Id of the trigger, or the catalog path of its playbook" },
  { name: "name", summary: "Its name, after a path; not needed where the playbook has one trigger", optional: true },
];

/** A command about one trigger. */
function about(
  name: "show" | "enable" | "disable" | "fire" | "next" | "fires" | "deliveries",
  summary: string,
  options: readonly CliOption[] = [],
): CliCommand {
  return {
    ...{ name, summary, arguments: [...WHICH], options: [...options, ...SERVER_OPTIONS] },
    load: async () => (await import("./triggers.ts")).TRIGGER_ACTIONS[name],
  };
}

const TRIGGERS: CliCommandSet = {
  name: "triggers",
  summary: "List triggers, turn them on or off, fire them now",
  default: "list",
  commands: [
    {
      name: "list",
      summary: "List the triggers",
      arguments: [],
      options: [
        { name: "path", value: "PATH", summary: "Only those of this playbook" },
        { name: "kind", value: "KIND", choices: TRIGGER_KINDS, summary: "Only those of this kind" },
        { name: "disabled", summary: "Only those that are turned off" },
        ...SERVER_OPTIONS,
      ],
      load: async () => (await import("./triggers.ts")).listTriggers,
    },
    about("show", "Show one trigger and what it fires for"),
    about("enable", "Turn it on again; times that passed meanwhile are not made up for"),
    about("disable", "Turn it off, for later versions too; its queued fires are skipped"),
    about("fire", "Fire it now, even if it is turned off", [
      { name: "key", value: "TEXT", summary: "Idempotency key: firing again with the same key starts nothing" },
    ]),
    about("next", "Show the next times of a schedule", [
      { name: "number", short: "n", value: "NUMBER", summary: "How many; default 10" },
      { name: "from", value: "TIME", summary: "After this time, as 2026-01-31T12:00:00Z; default now" },
    ]),
    about("fires", "List its fires, missed and skipped ones too, newest first", [
      { name: "status", value: "STATUS", choices: FIRE_STATUSES, summary: "Only those with this outcome" },
      { name: "limit", value: "NUMBER", summary: "How many; default 20" },
    ]),
    about("deliveries", "List the last deliveries of a webhook, refused ones too, newest first", [
      { name: "refused", summary: "Only those that were refused" },
      { name: "limit", value: "NUMBER", summary: "How many; default 20" },
    ]),
  ],
  details: `A trigger stands in a playbook under 'triggers:', or in a document of kind Trigger; to register the document makes it active.

Exit codes
  0 done   1 the fire has failed, or the server cannot be reached   2 no such trigger

Examples
  flow triggers
  flow triggers next reports/nightly nightly -n 3
  flow triggers fire reports/nightly nightly
  flow triggers fires reports/nightly nightly --status missed --json
  flow triggers deliveries hooks/github pushed --refused`,
};

const BACKFILL: CliCommand = {
  name: "backfill",
  summary: "Start a playbook for times of its schedule that have passed",
  arguments: [...WHICH],
  options: [
    {
      name: "from",
      value: "TIME",
      summary: "The first time, as 2026-01-31 or 2026-01-31T12:00:00Z; without an offset in the schedule's zone",
    },
    { name: "to", value: "TIME", summary: "The end; a time at it is left out" },
    { name: "max-active", value: "NUMBER", summary: "Executions of it that are open at a time; default 4" },
    { name: "order", value: "ORDER", choices: ["oldest", "newest"], summary: "Which times come first; default oldest" },
    { name: "only-missing", summary: "Leave out times for which an execution was started" },
    { name: "dry-run", summary: "Only say which times these are, and where gaps are" },
    { name: "wait", summary: "Wait until all are started" },
    ...SERVER_OPTIONS,
  ],
  details: `It starts an execution for each time of the schedule within the range, with that time as 'trigger.scheduled_at', also where the trigger is turned
off, and however many other executions of it are open. The servers do so in the background, also if one of them dies, once for each
time. It is a bulk operation: 'flow bulk status', 'hold', 'continue' and 'stop' are for it too.

Exit codes
  0 begun, or with --wait all are started   1 some have failed, or the server cannot be reached   2 no such trigger, or a range that cannot be read

Examples
  flow backfill reports/nightly nightly --from 2026-01-01 --to 2026-02-01 --dry-run
  flow backfill reports/nightly nightly --from 2026-01-01 --to 2026-02-01 --only-missing --max-active 2 --wait`,
  load: async () => (await import("./backfill.ts")).backfill,
};

/** The commands about triggers. */
export const TRIGGER_COMMANDS: readonly CliEntry[] = [TRIGGERS, BACKFILL];
