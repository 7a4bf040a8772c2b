import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, refusalIn } from "../../../src/schema/routes/answer.ts";
import { CATALOG_ROUTES } from "../../../src/schema/routes/catalog.ts";
import { EXECUTION_ROUTES } from "../../../src/schema/routes/executions.ts";
import { requestOf } from "../../../src/schema/routes/request.ts";
import { RESULT_ROUTES } from "../../../src/schema/routes/results.ts";
import { USER_ROUTES } from "../../../src/schema/routes/users.ts";
import type { Json } from "../../../src/schema/words/json.ts";

const CANCEL = requestOf(EXECUTION_ROUTES.cancel, { params: { execution_id: "7" } });

test("a call's parameters, query and body travel as the route's contract says", () => {
  const params = { execution_id: "7" };
  assert.deepEqual(requestOf(EXECUTION_ROUTES.cancel, { params, body: { reason: "a&b", cascade: undefined } }), {
    method: "POST",
    path: "/api/executions/7/cancel",
    body: '{"reason":"a&b"}',
  });
  const query = { wait_ms: 30_000, step: undefined, sealed: "true" } as const;
  assert.deepEqual(requestOf(EXECUTION_ROUTES.result, { params, query }), {
    method: "GET",
    path: "/api/executions/7/result?wait_ms=30000&sealed=true",
  });
  const place = { ref: "noetl://execution/7/x?y", worker: "w", command_id: "8", attempt: 1 };
  assert.deepEqual(requestOf(RESULT_ROUTES.save, { query: place, json: "[1]" }), {
    method: "PUT",
    path: "/api/results?ref=noetl%3A%2F%2Fexecution%2F7%2Fx%3Fy&worker=w&command_id=8&attempt=1",
    body: "[1]",
  });
});

test("a query in which nothing is given is no part of the address", () => {
  assert.equal(requestOf(EXECUTION_ROUTES.list, {}).path, "/api/executions");
  assert.equal(requestOf(EXECUTION_ROUTES.list, { query: { cursor: undefined } }).path, "/api/executions");
  assert.equal(requestOf(EXECUTION_ROUTES.list, { query: { cursor: "" } }).path, "/api/executions?cursor=");
});

test("a parameter is one part of the address, a catalog path as many as it has", () => {
  const user = requestOf(USER_ROUTES.grant, { params: { user: "a/b@x", role: "50% ?#" } });
  assert.equal(user.path, "/api/auth/users/a%2Fb%40x/roles/50%25%20%3F%23");
  const entry = requestOf(CATALOG_ROUTES.resource, { params: { path: "team/a b?x" }, query: { version: 3 } });
  assert.equal(entry.path, "/api/catalog/resource/team/a%20b%3Fx?version=3");
  assert.match(requestOf(USER_ROUTES.read, { params: { user: "half\ud800" } }).path, /half%EF%BF%BD$/);
});

test("no parameter makes the address that of another route", () => {
  for (const user of ["", ".", ".."]) {
    assert.throws(() => requestOf(USER_ROUTES.read, { params: { user } }), { code: "NOT_FOUND" }, user);
  }
  for (const path of ["", "/", "a//b", "../credentials", "a/./b", "a/.."]) {
    assert.throws(() => requestOf(CATALOG_ROUTES.resource, { params: { path } }), { code: "NOT_FOUND" }, path);
  }
  assert.equal(requestOf(USER_ROUTES.read, { params: { user: "..." } }).path, "/api/auth/users/...");
});

test("an answer of a newer server is understood: what its contract does not know is dropped", () => {
  const body = { execution_id: "7", status: "CANCELLED", children_cancelled: 0, since: "now", more: { a: 1 } };
  const answer = answerOf(EXECUTION_ROUTES.cancel, CANCEL, { status: 202, body });
  assert.deepEqual(answer, { execution_id: "7", status: "CANCELLED", children_cancelled: 0 });
});

test("what is no answer of the route is told with the call and its status", () => {
  const refuses = (status: number, body: Json | undefined) =>
    assert.throws(() => answerOf(EXECUTION_ROUTES.cancel, CANCEL, { status, body }), {
      code: "SERVER_UNREACHABLE",
      message: `POST /api/executions/7/cancel was answered with ${status}, not as a flow server answers. Is it a flow server of this version?`,
    });
  refuses(200, undefined);
  refuses(200, { execution_id: "7" });
  refuses(302, "elsewhere");
  refuses(404, undefined);
  refuses(502, { error: "a proxy's" });
});

test("a refusal keeps the server's code, message and detail; a code of a newer server is known by its status", () => {
  const gone = { status: 404, body: { error: "none", code: "NOT_FOUND", detail: { id: "7" }, request_id: "1" } };
  assert.throws(() => answerOf(EXECUTION_ROUTES.cancel, CANCEL, gone), {
    code: "NOT_FOUND",
    message: "none",
    detail: { id: "7" },
  });
  const codeOf = (status: number) => refusalIn({ status, body: { error: "e", code: "NEW" } })?.code;
  assert.deepEqual([400, 401, 403, 404, 409, 413, 429, 500, 503].map(codeOf), [
    ...["INVALID_INPUT", "UNAUTHENTICATED", "FORBIDDEN", "NOT_FOUND", "CONFLICT"],
    ...["TOO_LARGE", "RATE_LIMITED", "UNAVAILABLE", "UNAVAILABLE"],
  ]);
  assert.equal(refusalIn({ status: 404, body: { error: "e", code: "constructor" } })?.code, "NOT_FOUND");
});
