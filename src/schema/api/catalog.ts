import * as v from "valibot";
import { LabelsInput } from "../rules/execution-filter-schema.ts";
import {
  IdText,
  JsonObjectValue,
  NextCursor,
  PageQuery,
  RunVersion,
  storableText,
  Timestamp,
  VersionNumber,
} from "../words/wire.ts";
import { ExecuteAnswer } from "./executions.ts";

/*
 * Bodies, queries and answers of the catalog's routes (interface specification, Catalog). The routes validate with these,
 * `/api/openapi.json` is made from them, and the command line reads answers by them.
 */

/** What a catalog entry can be. */
export const RESOURCE_KINDS = ["playbook", "agent", "mcp", "trigger"] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];

const kind = v.picklist(RESOURCE_KINDS);
/** Callers write `Playbook` as documents do, or `playbook`. */
const kindInput = v.pipe(v.string(), v.toLowerCase(), kind);
const jsonObject = v.record(v.string(), v.unknown());

/** Longest catalog path, in characters. */
export const CATALOG_PATH_MAX = 512;

/** Body of `POST /api/catalog/register`. */
export const RegisterBody = v.object({
  content: v.pipe(v.string(), v.description("Text of the document, YAML, 1 MiB at most.")),
  resource_type: v.exactOptional(
    v.pipe(kindInput, v.description("What the document is expected to be; another kind is refused.")),
  ),
  if_changed: v.exactOptional(
    v.pipe(v.boolean(), v.description("Makes no new version when the text equals that of the newest one.")),
  ),
  strict: v.exactOptional(
    v.pipe(
      v.boolean(),
      v.description("Refuses a document with warnings too. What it calls may be missing all the same."),
    ),
  ),
});

/** One problem of a document, without the name of its file and its severity: its list says that. */
export const DocumentProblem = v.object({
  line: v.number(),
  column: v.number(),
  path: v.string(),
  code: v.string(),
  message: v.string(),
  hint: v.exactOptional(v.string()),
});
export type DocumentProblem = v.InferOutput<typeof DocumentProblem>;

/** `detail` of a refused document: every problem at once. */
export const DocumentProblems = v.object({
  message: v.string(),
  errors: v.array(DocumentProblem),
  warnings: v.array(DocumentProblem),
});
export type DocumentProblems = v.InferOutput<typeof DocumentProblems>;

/** Body of `POST /api/catalog/validate`. */
export const ValidateBody = v.object({
  content: v.pipe(v.string(), v.description("Text of the document, YAML, 1 MiB at most.")),
});

/** Answer of `POST /api/catalog/validate`, of a document with errors too. */
export const ValidateAnswer = v.object({
  valid: v.pipe(v.boolean(), v.description("Registering it would succeed: it has no error. It may have warnings.")),
  kind: v.pipe(v.nullable(kind), v.description("Null where it is not valid, as `path`.")),
  path: v.nullable(v.string()),
  messages: v.pipe(
    v.array(v.object({ severity: v.picklist(["error", "warning"]), ...DocumentProblem.entries })),
    v.description("In the order of the text, 100 and a last one that says how many more at most."),
  ),
});
export type ValidateAnswer = v.InferOutput<typeof ValidateAnswer>;

/** Body of `POST /api/execute/draft`. */
export const DraftBody = v.strictObject({
  content: v.pipe(v.string(), v.description("Text of the playbook, YAML, 1 MiB at most.")),
  workload: v.exactOptional(v.pipe(JsonObjectValue, v.description("Inputs: they replace keys of the defaults."))),
  labels: v.exactOptional(LabelsInput),
  target: v.exactOptional(v.pipe(storableText(512), v.minLength(1), v.description("Run no further than this step."))),
});
export type DraftBody = v.InferOutput<typeof DraftBody>;

/** Body of `POST /api/execute/draft/step`. */
export const DraftStepBody = v.strictObject({
  content: DraftBody.entries.content,
  step: v.pipe(
    storableText(512),
    v.minLength(1),
    v.description("The step of the text that is run, and nothing after it."),
  ),
  execution_id: v.exactOptional(
    v.pipe(
      IdText,
      v.description(
        "Whose inputs it gets: an ended execution of the text's path. Default: the newest in which it ran.",
      ),
    ),
  ),
  dry_run: v.exactOptional(v.pipe(v.boolean(), v.description("Answers the plan, and starts nothing."))),
});
export type DraftStepBody = v.InferOutput<typeof DraftStepBody>;

/** Body of `POST /api/execute/preview`: a registered path, or a text. */
export const PreviewBody = v.pipe(
  v.strictObject({
    path: v.exactOptional(v.pipe(storableText(CATALOG_PATH_MAX), v.minLength(1), v.description("A registered path."))),
    version: v.exactOptional(v.pipe(VersionNumber, v.description("Of the path; default the newest."))),
    content: v.exactOptional(v.pipe(v.string(), v.description("Text of a playbook, YAML, in the place of a path."))),
    workload: DraftBody.entries.workload,
  }),
  v.check(
    ({ path, version, content }) => (path === undefined) !== (content === undefined) && !(content && version),
    "needs `path`, perhaps with `version`, or `content`, and not both",
  ),
);
export type PreviewBody = v.InferOutput<typeof PreviewBody>;

/** Answer of a preview: what a start would begin with. */
export const PreviewAnswer = v.object({
  path: v.string(),
  version: RunVersion,
  workload: v.pipe(
    JsonObjectValue,
    v.description("Defaults and inputs, rendered, without secrets; `0` where an execution's id would stand."),
  ),
  problems: v.pipe(
    v.array(v.object({ path: v.string(), message: v.string() })),
    v.description("Why a start would be refused: what is wrong with which input."),
  ),
  warnings: v.array(v.string()),
});
export type PreviewAnswer = v.InferOutput<typeof PreviewAnswer>;

/** Answer to a registration. */
export const RegisterAnswer = v.object({
  status: v.literal("success"),
  path: v.string(),
  kind,
  catalog_id: IdText,
  version: VersionNumber,
  unchanged: v.exactOptional(v.literal(true)),
  warnings: v.array(DocumentProblem),
});
export type RegisterAnswer = v.InferOutput<typeof RegisterAnswer>;

/** Query of `GET /api/catalog`. */
export const CatalogQuery = v.object({
  ...PageQuery.entries,
  resource_type: v.exactOptional(
    v.pipe(kindInput, v.description("playbook, agent, mcp or trigger; all of them by default.")),
  ),
  prefix: v.exactOptional(
    v.pipe(
      v.string(),
      v.maxLength(CATALOG_PATH_MAX),
      v.check((text) => !text.includes("\u0000"), "must not hold U+0000"),
      v.description("What the paths begin with."),
    ),
  ),
  calls: v.exactOptional(
    v.pipe(
      storableText(CATALOG_PATH_MAX),
      v.minLength(1, "must not be empty"),
      v.description("Only those of which a task calls this path, as it is written there."),
    ),
  ),
});

/** A pause in the catalog. */
const CatalogPause = v.object({ since: Timestamp, by: v.nullable(v.string()), reason: v.nullable(v.string()) });

/** Body of `POST /api/catalog/pause/{path}` and `…/resume/{path}`. */
export const CatalogPauseBody = v.object({
  reason: v.exactOptional(v.pipe(storableText(1_024), v.description("Why; every start that is refused says it."))),
});

/** Answer to either: what it is now. */
export const CatalogPauseAnswer = v.object({ path: v.string(), paused: v.nullable(CatalogPause) });
export type CatalogPauseAnswer = v.InferOutput<typeof CatalogPauseAnswer>;

/** One entry of a list: everything but the document. */
export const CatalogItem = v.object({
  path: v.string(),
  kind,
  version: VersionNumber,
  catalog_id: IdText,
  created_at: Timestamp,
  metadata: jsonObject,
  paused: v.exactOptional(
    v.pipe(
      CatalogPause,
      v.description("Nothing of its path is started: since when, by whom and why. Not in lists of versions."),
    ),
  ),
});
export type CatalogItem = v.InferOutput<typeof CatalogItem>;

/** Answer of `GET /api/catalog`: the newest version of each path, in the order of the paths. */
export const CatalogAnswer = v.object({ resources: v.array(CatalogItem), next_cursor: NextCursor });
export type CatalogAnswer = v.InferOutput<typeof CatalogAnswer>;

/** Query of `GET /api/catalog/resource/{path}`. */
export const ResourceQuery = v.object({
  version: v.exactOptional(
    v.pipe(
      v.string(),
      v.regex(/^(latest|[1-9]\d{0,8})$/, "must be a version number, or latest"),
      v.description("Version; the newest one by default."),
    ),
  ),
});

/** Answer of `GET /api/catalog/resource/{path}`. */
export const ResourceAnswer = v.object({
  ...CatalogItem.entries,
  payload: jsonObject,
  content: v.string(),
  input_schema: v.exactOptional(
    v.pipe(
      jsonObject,
      v.description("JSON Schema of the inputs, with their defaults; absent where the playbook declares none."),
    ),
  ),
});
export type ResourceAnswer = v.InferOutput<typeof ResourceAnswer>;

/** Answer of `GET /api/catalog/entries/{catalog_id}`: what a worker compiles. */
export const EntryAnswer = v.object({
  catalog_id: IdText,
  path: v.string(),
  version: RunVersion,
  kind,
  content: v.string(),
});
export type EntryAnswer = v.InferOutput<typeof EntryAnswer>;

/** Answer of `GET /api/catalog/versions/{path}`: newest first. */
export const VersionsAnswer = v.object({ versions: v.array(CatalogItem), next_cursor: NextCursor });
export type VersionsAnswer = v.InferOutput<typeof VersionsAnswer>;

/** Body of `POST /api/catalog/agents/list`. */
export const AgentsBody = v.object({
  limit: v.exactOptional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(500))),
  cursor: v.exactOptional(v.string()),
  hidden: v.exactOptional(
    v.pipe(v.boolean(), v.description("Also those whose `metadata.terminal.visible` is false; not by default.")),
  ),
});

/** Answer of `POST /api/catalog/agents/list`; each payload has `metadata.terminal.visible`, true where the document is silent. */
export const AgentsAnswer = v.object({
  entries: v.array(v.object({ catalog_id: IdText, path: v.string(), version: VersionNumber, payload: jsonObject })),
  next_cursor: NextCursor,
});
export type AgentsAnswer = v.InferOutput<typeof AgentsAnswer>;

/** Body of `POST /api/mcp/mcp/{resource_path}/lifecycle/{action}`: nothing is read from it. */
export const LifecycleBody = v.object({});

/** Answer to it: the execution that was started, whose `path` is that of the action's playbook. */
export const LifecycleAnswer = v.object({
  ...ExecuteAnswer.entries,
  resource: v.pipe(v.string(), v.description("Catalog path of the MCP resource.")),
  action: v.string(),
});
export type LifecycleAnswer = v.InferOutput<typeof LifecycleAnswer>;

/** What a page may ask of an MCP server. */
export const MCP_CALL_METHODS = [
  "health",
  "tools/list",
  "tools/call",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "prompts/get",
] as const;

/** Body of `POST /api/mcp/mcp/{resource_path}/call`. */
export const McpCallBody = v.object({
  method: v.picklist(MCP_CALL_METHODS, `expects ${MCP_CALL_METHODS.join(", ")}`),
  tool: v.exactOptional(v.pipe(v.string(), v.description("The tool of `tools/call`."))),
  arguments: v.exactOptional(
    v.pipe(
      JsonObjectValue,
      v.description("Arguments of the tool; of `resources/read` and `prompts/get` the request's parameters."),
    ),
  ),
});

export type McpCallBody = v.InferOutput<typeof McpCallBody>;

/** Body of `POST /api/mcp/call`: the same, and what is called. */
export const McpResourceCallBody = v.object({
  resource: v.pipe(
    v.string(),
    v.minLength(1, "expects a catalog path"),
    v.description("Catalog path of the MCP resource; `mcp/` before it may be left out."),
  ),
  ...McpCallBody.entries,
});

/** Answer to it: the execution that was started, of version 0, whose result has the answer and the JSON-RPC `messages`. */
export const McpCallAnswer = v.object({
  ...ExecuteAnswer.entries,
  resource: v.pipe(v.string(), v.description("Catalog path of the MCP resource.")),
});
export type McpCallAnswer = v.InferOutput<typeof McpCallAnswer>;
