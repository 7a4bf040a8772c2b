import type * as v from "valibot";
import type { AccessAction, Permission } from "../rules/access-rules.ts";

/** The role of a caller's token: unknown, a worker, or an operator, who may do everything. */
export type TokenRole = "anonymous" | "worker" | "operator";

/**
 * What a call can be about: the catalog path in the parameter `path`, the version in `catalog_id`, the execution in
 * `execution_id`, or the execution whose result the query names in `ref`.
 */
export type SubjectName = "path" | "entry" | "execution" | "result";

/**
 * What a user needs for a route. `session`: only a session. A permission, or one of several, of their roles. Or a role that
 * allows the action on a catalog path: that of the validated input's subject (a {@link SubjectName}), one that the handler
 * checks itself (`asked`) with `c.var.permit`, or those of the items of a `list`, which the handler filters by `c.var.visible`.
 */
export type UserNeeds =
  | "session"
  | { permission: Permission | readonly Permission[] }
  | { action: AccessAction; of: SubjectName | "asked" | "list" };

/**
 * The contract of a route: its path, who may call it, its input and its answers. Routes validate by it, and the table of
 * permissions and `/api/openapi.json` are generated from it. A route without a contract refuses every call.
 */
export interface RouteContract {
  method: "get" | "post" | "put" | "delete";
  /** In the router's spelling: `/api/catalog/resource/:path{.+}`. */
  path: string;
  /** One line for the documentation. */
  summary: string;
  /** The least that the caller's token must be. `anonymous` needs none: exactly health, metrics, deliveries of webhooks and links of approvals. */
  access: TokenRole;
  /**
   * What a worker needs besides its token: the secret of a claim that is the present one (`x-flow-claim`), and to stay with that
   * claim. `tree`: with executions of its tree; `child`: with those that its execution called; `stop`: the same, also after the
   * claim's end; `asked`: the handler checks it by `c.var.claim`.
   */
  claim?: "tree" | "child" | "stop" | "asked";
  /** What a user needs. Absent: users may not call it. */
  user?: UserNeeds;
  query?: v.ObjectSchema<v.ObjectEntries, undefined>;
  body?: v.GenericSchema;
  /** May the body be left out? An empty one counts as `{}`. Default false. */
  bodyOptional?: true;
  /** Whose limit the body has, when it is not the usual one. */
  bodyLimit?: "batch" | "result" | "hook" | "link";
  /** The answer of a call that succeeds. Absent: it is text of `contentType`. */
  answer?: v.GenericSchema;
  /** Status of a call that succeeds. Default 200. */
  status?: 200 | 201 | 202;
  /** A call that made something new is answered with 201, and the same answer. */
  creates?: true;
  /** Default `application/json`. */
  contentType?: string;
  /**
   * What a call is in the audit log: `credential.read` on `credential/:identifier`, parameters of the path filled in. Refused
   * calls are recorded too; the use case records the rest.
   */
  audit?: { action: string; resource: string };
  /** Statuses of refusals, besides those that every route has. */
  refusals?: readonly number[];
}

/** Keeps the precise types of the schemas, which handlers infer from. */
export function contract<const C extends RouteContract>(definition: C): C {
  return definition;
}

/** Routes of one subject, by name. */
export type RouteGroup = Readonly<Record<string, RouteContract>>;

type ParameterNames<Path extends string> = Path extends `${infer First}/${infer Rest}`
  ? ParameterName<First> | ParameterNames<Rest>
  : ParameterName<Path>;
type ParameterName<Segment extends string> = Segment extends `:${infer Name}{${string}}`
  ? Name
  : Segment extends `:${infer Name}`
    ? Name
    : never;

/** The parameters in a route's path, by name, decoded. */
export type ParametersOf<C extends RouteContract> = Readonly<Record<ParameterNames<C["path"]>, string>>;

/** What a route answers. */
export type AnswerOf<C extends RouteContract> = C extends { answer: infer S extends v.GenericSchema }
  ? v.InferOutput<S>
  : unknown;
