import { toJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { DOCTOR_TOOLS, DoctorRequest, type DoctorToolName } from "../../schema/api/doctor.ts";
import type { Json } from "../../schema/words/json.ts";

/** Description of a doctor's tool, for the model or person that chooses one. */
export interface DoctorTool {
  name: DoctorToolName;
  description: string;
  /** It changes something, if only by repeating a notice. */
  changes: boolean;
  /** JSON Schema of its input. */
  inputSchema: { type: "object"; [key: string]: Json };
}

const DESCRIPTIONS: Readonly<Record<DoctorToolName, string>> = {
  detect:
    "Looks for what is wrong with executions, commands, workers, queues and the database. Each finding says what, since when, why it matters and what to do. Changes nothing.",
  reachability: "Whether the server, its database and the broker answer. Changes nothing.",
  repair_trigger_reaper:
    "Has the server publish the notification of stranded commands again, so that workers claim them. Ends no command and starts none twice.",
};

const requestSchema = v.object(DoctorRequest.entries);
const swept = v.omit(requestSchema, ["db_dsn", "stale_seconds"]);

/** The doctor's tools, in the order in which they are of use. */
export const TOOLS: readonly DoctorTool[] = DOCTOR_TOOLS.map((name) => ({
  name,
  description: DESCRIPTIONS[name],
  changes: name === "repair_trigger_reaper",
  inputSchema: schemaOf(name),
}));

function schemaOf(name: DoctorToolName): DoctorTool["inputSchema"] {
  const schema =
    name === "repair_trigger_reaper"
      ? swept
      : name === "reachability"
        ? v.omit(requestSchema, ["stale_seconds"])
        : requestSchema;
  // Our own rules are in the description; JSON Schema cannot express them.
  const { $schema: _, ...rest } = toJsonSchema(schema, { errorMode: "ignore" });
  return { ...(rest as Record<string, Json>), type: "object" };
}
