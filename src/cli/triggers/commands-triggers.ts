import { FIRE_STATUSES, TRIGGER_KINDS } from "../../schema/triggers/trigger.ts";
import type { CliArgument, CliCommand, CliCommandSet, CliEntry, CliOption } from "../command-line/command.ts";
import { SERVER_OPTIONS } from "../command-line/common-options.ts";

const WHICH: readonly CliArgument[] = [
  { name: "trigger|path", summary: "Id of the trigger, or the catalog path of its playbook" },
  { name: "name", summary: "Its name, after a path; not needed where the playbook has one trigger", optional: true },
];

/** A command about one trigger. */
function about(
  name: "show" | "enable" | "disable" | "fire" | "next" | "fires",
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
  summary: "List what starts playbooks by itself, turn it on and off, fire it now",
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
      { name: "key", value: "TEXT", summary: "Your name for it: fired again under the same key, it starts nothing" },
    ]),
    about("next", "Show the next times of a schedule", [
      { name: "number", short: "n", value: "NUMBER", summary: "How many; default 10" },
      { name: "from", value: "TIME", summary: "After this time, as 2026-01-31T12:00:00Z; default now" },
    ]),
    about("fires", "List its fires, missed and skipped ones too, newest first", [
      { name: "status", value: "STATUS", choices: FIRE_STATUSES, summary: "Only those of which this has become" },
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
  flow triggers fires reports/nightly nightly --status missed --json`,
};

/** The commands about triggers. */
export const TRIGGER_COMMANDS: readonly CliEntry[] = [TRIGGERS];
