import { type Context, Hono } from "hono";
import type * as v from "valibot";
import type { AnswerOf, ParametersOf, RouteContract, RouteGroup } from "../../schema/routes/contract.ts";
import { maskedJson } from "./masked-json.ts";
import type { RouteEnvironment } from "./request-context.ts";
import { readJson, validQuery } from "./validate.ts";

/** A call as its handler gets it, typed by the contract of the route. */
export interface RouteCall<C extends RouteContract> {
  params: ParametersOf<C>;
  /** The query by the contract's schema. */
  query: C extends { query: infer S extends v.GenericSchema } ? v.InferOutput<S> : undefined;
  /** The body by the contract's schema. */
  body: C extends { body: infer S extends v.GenericSchema } ? v.InferOutput<S> : undefined;
  /** Answers with JSON. `status` is the contract's by default. */
  json(answer: AnswerOf<C>, status?: 200 | 201 | 202 | 503): Response;
  /** Answers with JSON for people: `[secret]` where something is sealed. */
  maskedJson(answer: AnswerOf<C>): Response;
}

type Handle<Call> = (call: Call, c: Context<RouteEnvironment>) => Response | Promise<Response>;

/** What answers a route. With `readsBody` the handler reads the body itself: it needs its bytes, or takes them as they come. */
export type RouteHandler<C extends RouteContract> =
  | Handle<RouteCall<C>>
  | { readsBody: Handle<Omit<RouteCall<C>, "body">> };

/**
 * The routes of a group, each with its handler. Query and body are validated by the contract before a handler runs: `FlowError`
 * INVALID_INPUT with every problem, or TOO_LARGE.
 */
export function serve<const G extends RouteGroup>(
  group: G,
  handlers: { readonly [Name in keyof G]: RouteHandler<G[Name]> },
): Hono<RouteEnvironment> {
  const app = new Hono<RouteEnvironment>();
  for (const [name, contract] of Object.entries(group)) {
    const handler = handlers[name as keyof G] as RouteHandler<RouteContract>;
    app.on(contract.method.toUpperCase(), contract.path, handlerOf(contract, handler));
  }
  return app;
}

function handlerOf(
  contract: RouteContract,
  handler: RouteHandler<RouteContract>,
): (c: Context<RouteEnvironment>) => Promise<Response> {
  const readsBody = typeof handler === "object";
  const handle = (readsBody ? handler.readsBody : handler) as Handle<unknown>;
  const bodySchema = readsBody ? undefined : contract.body;
  return async (c) => {
    const query = contract.query === undefined ? undefined : validQuery(c, contract.query);
    const body = bodySchema === undefined ? undefined : await readJson(c, bodySchema, contract.bodyOptional);
    const call = {
      params: c.req.param(),
      query,
      body,
      json: (answer: unknown, status = contract.status ?? 200) =>
        c.env?.message?.json(answer as object, status) ?? c.json(answer as object, status),
      maskedJson: (answer: unknown) => maskedJson(c, answer as object),
    };
    return await handle(call, c);
  };
}
