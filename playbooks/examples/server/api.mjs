#!/usr/bin/env node
/*
 * The API that the examples talk to. Nothing but Node is needed:
 *
 *   node playbooks/examples/server/api.mjs [--port 8700] [--host 127.0.0.1]
 *
 * It prints its address in one line, keeps everything in memory, and ends with Ctrl-C. `--port 0` takes any free port.
 */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

/** Longest body that is read, in bytes. */
const BODY_BYTES_MAX = 64 * 1024;

const TEAMS = ["build", "data", "sales"];
const USERS = Array.from({ length: 23 }, (_, index) => ({
  id: index + 1,
  name: `User ${String(index + 1).padStart(2, "0")}`,
  team: TEAMS[index % TEAMS.length],
  active: index % 4 !== 3,
}));

const QUOTES = { north: { price: 12.5, days: 4 }, south: { price: 9.9, days: 9 }, west: { price: 14, days: 2 } };

/** Cards with less than this on them are refused. */
const CARD_LIMIT = 500;

/** Failures still to come, by key of the flaky endpoint. */
const failuresLeft = new Map();
/** Payments by their idempotency key. */
const payments = new Map();

const CHANNELS = ["management", "team-data"];
/** Reports by their idempotency key, and rows of deliveries by day. */
const reports = new Map();
const deliveries = new Map([["2026-01-30", [{ item: "A-1", amount: 3 }]]]);

/** The newest export of each table: the key under which it was ordered, and looks that are left until it is ready. */
const exports = new Map();
/** So often an export is not ready yet. */
const EXPORT_LOOKS = 2;

/** Who may have tokens, and the tokens and sessions that were given out. */
const CLIENT = { client_id: "flow", client_secret: "example" };
const tokens = new Set();
const sessions = new Map();

/** `METHOD /path/:name` and what answers it: `[status, body, headers?]`. */
const ROUTES = {
  "GET /health": () => [200, { status: "ok" }],
  "GET /users": listUsers,
  "GET /flaky/:key": flaky,
  "GET /quotes/:supplier": ({ params }) =>
    Object.hasOwn(QUOTES, params.supplier)
      ? [200, { supplier: params.supplier, ...QUOTES[params.supplier] }]
      : [404, { error: `There is no supplier '${params.supplier}'` }],
  "POST /payments": pay,
  "POST /reports": publish,
  "GET /deliveries/:day": ({ params }) =>
    deliveries.has(params.day)
      ? [200, { day: params.day, rows: deliveries.get(params.day) }]
      : [404, { error: `Nothing was delivered for ${params.day} yet` }],
  "POST /deliveries/:day": deliver,
  "POST /exports": orderExport,
  "GET /exports/:id": lookAtExport,
  "POST /token": giveToken,
  "POST /sessions": openSession,
  "GET /contacts": listContacts,
};

/** A page of users. `next_cursor` is null on the last one. */
function listUsers({ query }) {
  const limit = Math.min(Math.max(Number(query.get("limit") ?? 10) || 10, 1), 100);
  const from = Number(query.get("cursor") ?? 0) || 0;
  const to = from + limit;
  return [200, { users: USERS.slice(from, to), next_cursor: to < USERS.length ? String(to) : null }];
}

/** Fails as often as `?failures=` says for each key, then answers. `?retry_after=` is sent with each failure. */
function flaky({ params, query }) {
  const left = failuresLeft.get(params.key) ?? Number(query.get("failures") ?? 2);
  if (left <= 0) {
    failuresLeft.delete(params.key);
    return [200, { key: params.key, message: "It works again" }];
  }
  failuresLeft.set(params.key, left - 1);
  const retryAfter = query.get("retry_after");
  return [503, { error: "Try again later" }, retryAfter === null ? {} : { "retry-after": retryAfter }];
}

/** Charges a card. A repeated idempotency key gives the first answer again and charges nothing. */
function pay({ headers, body }) {
  const { order, amount } = body ?? {};
  if (typeof order !== "string" || typeof amount !== "number") return [422, { error: "order and amount are needed" }];
  if (amount > CARD_LIMIT) return [402, { error: `The card was refused: ${amount} is over its limit` }];
  const key = headers["idempotency-key"];
  const known = key === undefined ? undefined : payments.get(key);
  const payment = known ?? { payment_id: `pay-${payments.size + 1}`, order, amount };
  if (key !== undefined) payments.set(key, payment);
  return [known === undefined ? 201 : 200, payment];
}

/** Publishes a report. A repeated idempotency key gives the first answer again and publishes nothing. */
function publish({ headers, body }) {
  const { channel, teams } = body ?? {};
  if (typeof teams !== "object" || teams === null) return [422, { error: "teams are needed" }];
  if (!CHANNELS.includes(channel)) return [404, { error: `There is no channel '${channel}'` }];
  const key = headers["idempotency-key"];
  const known = reports.get(key);
  const report = known ?? { report_id: `report-${reports.size + 1}`, channel };
  if (key !== undefined) reports.set(key, report);
  return [200, report];
}

/** The supplier delivers: rows of `{item, amount}`. */
function deliver({ params, body }) {
  if (!Array.isArray(body?.rows)) return [422, { error: "rows are needed" }];
  deliveries.set(params.day, body.rows);
  return [201, { day: params.day, rows: body.rows.length }];
}

/** Begins the export of a table; the same key begins one. */
function orderExport({ headers, body }) {
  const key = headers["idempotency-key"] ?? randomUUID();
  const id = `export-of-${body?.table}`;
  if (exports.get(id)?.key !== key) exports.set(id, { key, left: EXPORT_LOOKS });
  return [202, { id }];
}

/** An export is ready after some looks. */
function lookAtExport({ params }) {
  const found = exports.get(params.id);
  if (found === undefined) return [404, { error: `There is no export '${params.id}'` }];
  found.left -= 1;
  return [200, found.left >= 0 ? { id: params.id, status: "running" } : { id: params.id, status: "ready", rows: 42 }];
}

/** The token endpoint of OAuth: client credentials, as form fields. */
function giveToken({ body }) {
  const { grant_type: grant, client_id: id, client_secret: secret } = body ?? {};
  if (grant !== "client_credentials") return [400, { error: "unsupported_grant_type" }];
  if (id !== CLIENT.client_id || secret !== CLIENT.client_secret) return [401, { error: "invalid_client" }];
  const token = `token-${randomUUID()}`;
  tokens.add(token);
  return [200, { access_token: token, token_type: "Bearer", expires_in: 300 }];
}

/** A session of one team, for who has a token. */
function openSession({ headers, body }) {
  if (!tokens.has(headers.authorization?.replace("Bearer ", ""))) return [401, { error: "A token is needed" }];
  if (!TEAMS.includes(body?.team)) return [422, { error: `There is no team '${body?.team}'` }];
  const session = `session-${randomUUID()}`;
  sessions.set(session, body.team);
  return [200, { session, seconds: 60 }];
}

/** The users of the session's team. */
function listContacts({ headers }) {
  const team = sessions.get(headers["x-session"]);
  if (team === undefined) return [403, { error: "A session is needed" }];
  return [200, { team, contacts: USERS.filter((user) => user.team === team).map(({ name }) => name) }];
}

function route(method, path) {
  const given = path.split("/");
  for (const [pattern, answer] of Object.entries(ROUTES)) {
    const [wantedMethod, wantedPath] = pattern.split(" ");
    const wanted = wantedPath.split("/");
    if (wantedMethod !== method || wanted.length !== given.length) continue;
    const params = {};
    const fits = wanted.every((part, index) => {
      if (!part.startsWith(":")) return part === given[index];
      params[part.slice(1)] = decodeURIComponent(given[index]);
      return given[index] !== "";
    });
    if (fits) return { answer, params };
  }
  return undefined;
}

async function readBody(request) {
  request.setEncoding("utf8");
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > BODY_BYTES_MAX) throw new Error("the body is too long");
  }
  if (text === "") return undefined;
  const isForm = request.headers["content-type"]?.startsWith("application/x-www-form-urlencoded");
  return isForm ? Object.fromEntries(new URLSearchParams(text)) : JSON.parse(text);
}

async function handle(request) {
  const url = new URL(request.url, "http://localhost");
  const found = route(request.method, url.pathname);
  if (found === undefined) return [404, { error: `There is no ${request.method} ${url.pathname}` }];
  const body = await readBody(request);
  return found.answer({ params: found.params, query: url.searchParams, headers: request.headers, body });
}

const server = createServer(async (request, response) => {
  let answer;
  try {
    answer = await handle(request);
  } catch (error) {
    answer = [400, { error: error.message }];
  }
  const [status, body, headers = {}] = answer;
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
});

const { values } = parseArgs({
  options: { port: { type: "string", default: "8700" }, host: { type: "string", default: "127.0.0.1" } },
});
server.on("error", (error) => {
  process.stderr.write(`The example API cannot listen on ${values.host}:${values.port}: ${error.message}\n`);
  process.exitCode = 1;
});
server.listen(Number(values.port), values.host, () => {
  process.stdout.write(`Example API: http://${values.host}:${server.address().port}\n`);
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    server.close();
    server.closeAllConnections();
  });
}
