import { ArtifactsAnswer, ResolveQuery, SaveResultAnswer, SaveResultQuery } from "../api/results.ts";
import { JsonValue } from "../words/wire.ts";
import { contract } from "./contract.ts";

const RESOLVE = contract({
  method: "get",
  path: "/results/resolve",
  summary: "The payload behind a reference, its checksum verified; a part of it with Range",
  access: "worker",
  claim: "asked",
  user: { action: "view", of: "result" },
  query: ResolveQuery,
  answer: JsonValue,
  refusals: [404, 416, 422],
});

/** Stored results (interface specification, Results and lifecycle). */
export const RESULT_ROUTES = {
  save: contract({
    method: "put",
    path: "/api/results",
    summary: "Keeps a payload under its reference for the present claim of a command; 409 for a claim that was lost",
    access: "worker",
    claim: "asked",
    query: SaveResultQuery,
    body: JsonValue,
    bodyLimit: "result",
    answer: SaveResultAnswer,
    refusals: [409, 413, 422, 507],
  }),
  artifacts: contract({
    method: "get",
    path: "/api/executions/:execution_id/artifacts",
    summary: "The files that tasks of an execution have stored, with type, size and checksum",
    access: "operator",
    user: { action: "view", of: "execution" },
    answer: ArtifactsAnswer,
    refusals: [404, 422],
  }),
  resolve: RESOLVE,
  /** The same where a prefix of `/api` alone is let through. */
  resolveApi: contract({ ...RESOLVE, path: "/api/results/resolve" }),
} as const;
