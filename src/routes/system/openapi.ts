import { toJsonSchema } from "@valibot/to-json-schema";
import type * as v from "valibot";
import type { RouteContract, UserNeeds } from "../../schema/routes/contract.ts";
import { OPENAPI_ROUTES } from "../../schema/routes/system.ts";
import { ErrorBody } from "../../schema/words/wire.ts";
import { serve } from "../http/serve.ts";

/** The description of these routes, made at the first call and kept. */
export function openApiRoutes(contracts: readonly RouteContract[], version: string) {
  let document: Record<string, unknown> | undefined;
  return serve(OPENAPI_ROUTES, {
    openapi: ({ json }) => {
      document ??= openApiDocument(contracts, version);
      return json(document);
    },
  });
}

type JsonSchema = Record<string, unknown>;

/** OpenAPI 3.1 of the contracts: the schemas are the ones that the routes validate with. */
export function openApiDocument(contracts: readonly RouteContract[], version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const definition of contracts) {
    const path = definition.path.replaceAll(PARAMETER, "{$1}");
    paths[path] = { ...paths[path], [definition.method]: operation(definition, path) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "flow", version, description: "Declarative YAML workflows as durable, distributed executions." },
    paths,
    components: {
      schemas: { Error: schemaOf(ErrorBody, "output") },
      securitySchemes: { token: { type: "http", scheme: "bearer", description: "Operator's or worker's token." } },
    },
  };
}

/** A parameter in the router's spelling: its name, and its pattern where it has one. */
const PARAMETER = /:(\w+)(\{[^}]*\})?/g;

function operation(definition: RouteContract, path: string): Record<string, unknown> {
  const { summary, access, query, body, bodyOptional, status = 200, refusals = [] } = definition;
  const parameters = [...pathParameters(definition.path), ...(query === undefined ? [] : queryParameters(query))];
  const statuses = [...(access === "anonymous" ? [] : [401]), 403, ...refusals, 500, 503];
  return {
    summary,
    operationId:
      `${definition.method}${path.replaceAll(/[^a-z]+(\w)/gi, (_, letter: string) => letter.toUpperCase())}`.replaceAll(
        /\W/g,
        "",
      ),
    description: whoMay(definition),
    security: access === "anonymous" ? [] : [{ token: [] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: bodyOptional !== true,
            content: { "application/json": { schema: schemaOf(body, "input") } },
          },
        }),
    responses: {
      [status]: success(definition),
      ...(definition.creates === true && { 201: success(definition) }),
      ...Object.fromEntries(statuses.map((status) => [status, ERROR])),
    },
  };
}

function whoMay({ access, user }: RouteContract): string {
  if (access === "anonymous") return "Needs no token.";
  const tokens = access === "worker" ? "worker, operator" : access;
  return user === undefined ? `For: ${tokens}.` : `For: ${tokens}; a user ${userNeeds(user)}.`;
}

function userNeeds(needs: UserNeeds): string {
  if (needs === "session") return "with a session";
  if ("permission" in needs) return `with the permission ${[needs.permission].flat().join(" or ")}`;
  const { action, of } = needs;
  return of === "list" ? `sees what they may ${action}` : `who may ${action} its path`;
}

const ERROR = {
  description: "Refused or failed",
  headers: { "x-request-id": { schema: { type: "string" } } },
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
};

function success({ answer, contentType = "application/json" }: RouteContract): Record<string, unknown> {
  const schema =
    answer === undefined ? (contentType === "application/json" ? {} : { type: "string" }) : schemaOf(answer, "output");
  return {
    description: "Done",
    headers: { "x-request-id": { schema: { type: "string" } } },
    content: { [contentType]: { schema } },
  };
}

function pathParameters(path: string): JsonSchema[] {
  return [...path.matchAll(PARAMETER)].map(([, name = "", pattern]) => ({
    name,
    in: "path",
    required: true,
    ...(pattern !== undefined && { description: "Slash-separated; slashes may stand as they are." }),
    schema: name.endsWith("_id") ? { type: "string", pattern: "^[1-9][0-9]{0,15}$" } : { type: "string" },
  }));
}

function queryParameters(query: v.ObjectSchema<v.ObjectEntries, undefined>): JsonSchema[] {
  const { properties = {}, required = [] } = schemaOf(query, "input") as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => {
    const { description, ...rest } = schema;
    const described = description === undefined ? {} : { description };
    return { name, in: "query", required: required.includes(name), ...described, schema: rest };
  });
}

/** What callers send (`input`) and what they get (`output`). Checks that JSON Schema cannot say are left out. */
function schemaOf(schema: v.GenericSchema, typeMode: "input" | "output"): JsonSchema {
  const { $schema: _, ...rest } = toJsonSchema(schema, {
    target: "draft-2020-12",
    typeMode,
    errorMode: "ignore",
  }) as unknown as JsonSchema;
  return rest;
}
