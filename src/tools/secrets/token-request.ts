import type { ObtainedSecret } from "../../ports/secret-source.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { addressOf, fieldAt, secondsOf } from "./fields.ts";
import { jsonOf, refused, type SecretAnswer, type SecretRequest, type SendSecret } from "./request.ts";

/** Lifetime of a renewed token whose answer has none (interface specification, Limits). */
const RENEWED_TTL_SECONDS = 3_600;

/** How a request is written where the entry does not say. */
interface RequestDefaults {
  /** The subject of error messages: "The keychain entry". */
  where: string;
  method: string;
  /** Body without a content type: form fields, as token endpoints take them (RFC 6749), or JSON. */
  body: "form" | "json";
}

/**
 * The request of a keychain entry of kind `oauth2` or `http`: endpoint, method, headers and data, the data as form fields or
 * JSON by the content type. Its answer's fields become the entry's.
 */
export async function requestEntry(
  send: SendSecret,
  kind: "oauth2" | "http",
  definition: JsonObject,
  authorization: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<ObtainedSecret> {
  const body = kind === "oauth2" ? "form" : "json";
  const method = kind === "http" && own(definition, "data") === undefined ? "GET" : "POST";
  const request = tokenRequest(definition, { where: "The entry", method, body });
  const answer = await send({ ...request, headers: { ...request.headers, ...authorization } }, signal);
  if (answer.status < 200 || answer.status > 299) throw refused(answer);
  const tokenField = own(definition, "token_field");
  const fields = kind === "http" && tokenField === undefined ? anyFields(answer) : tokenFields(answer, tokenField);
  const ttlSeconds = ttlOf(fields, own(definition, "ttl_field"));
  return { fields, ...defined({ ttlSeconds }) };
}

/** Carries out a renewal (interface specification, Renewal configuration). Anything but HTTP 200 is a failure. */
export async function requestRenewal(
  send: SendSecret,
  config: JsonObject,
  signal: AbortSignal,
): Promise<ObtainedSecret> {
  const answer = await send(tokenRequest(config, { where: "renew_config", method: "POST", body: "form" }), signal);
  if (answer.status !== 200) throw refused(answer);
  const fields = tokenFields(answer, own(config, "token_field"));
  return { fields, ttlSeconds: ttlOf(fields, own(config, "ttl_field")) ?? RENEWED_TTL_SECONDS };
}

function tokenRequest(config: JsonObject, { where, method: fallback, body }: RequestDefaults): SecretRequest {
  const endpoint = own(config, "endpoint");
  if (typeof endpoint !== "string" || endpoint.trim() === "") {
    throw new FlowError("INVALID_INPUT", `${where} has no 'endpoint': the address of its request.`);
  }
  const url = addressOf(`${where}'s 'endpoint'`, endpoint);
  const given = own(config, "method");
  const method = typeof given === "string" && given.trim() !== "" ? given.trim().toUpperCase() : fallback;
  if (!/^[A-Z]{1,20}$/.test(method)) {
    throw new FlowError("INVALID_INPUT", `${where}'s 'method' is no method of HTTP: POST or GET is expected.`);
  }
  const headers = headersOf(config);
  const data = own(config, "data") as Json | undefined;
  if (data === undefined || data === null) return { method, url, headers };
  if (method === "GET" || method === "HEAD") {
    if (isJsonObject(data)) for (const [name, value] of fieldsOf(data)) url.searchParams.append(name, value);
    return { method, url, headers };
  }
  const asForm = "application/x-www-form-urlencoded";
  const byKind = body === "form" ? asForm : "application/json";
  const type = headers["content-type"] ?? (typeof data === "string" ? "text/plain" : byKind);
  headers["content-type"] = type;
  if (typeof data === "string") return { method, url, headers, body: data };
  const isForm = isJsonObject(data) && type.toLowerCase().startsWith(asForm);
  return { method, url, headers, body: isForm ? formOf(data) : JSON.stringify(data) };
}

/** Form fields; null is left out, a list repeats its field. */
export function formOf(data: JsonObject): string {
  return new URLSearchParams(fieldsOf(data)).toString();
}

function fieldsOf(data: JsonObject): [string, string][] {
  return Object.keys(data).flatMap((name) =>
    [own(data, name) as Json]
      .flat()
      .filter((value) => value !== null)
      .map((value): [string, string] => [name, typeof value === "object" ? JSON.stringify(value) : String(value)]),
  );
}

function headersOf(config: JsonObject): Record<string, string> {
  const given = own(config, "headers");
  const headers: Record<string, string> = {};
  for (const name of Object.keys(isJsonObject(given) ? given : {})) {
    const value = own(given as JsonObject, name);
    if (value !== null && typeof value !== "object") setOwn(headers, name.toLowerCase(), String(value));
  }
  return headers;
}

/** The fields of an answer that must hold a token, which is readable as `access_token` too, whatever it is called there. */
export function tokenFields(answer: SecretAnswer, tokenField: unknown = "access_token"): JsonObject {
  const name = typeof tokenField === "string" && tokenField !== "" ? tokenField : "access_token";
  const data = jsonOf(answer);
  if (!isJsonObject(data)) {
    throw new FlowError("UNAUTHENTICATED", `${answer.what} answered ${answer.status} with no JSON object.`);
  }
  const token = fieldAt(data, name);
  if ((typeof token !== "string" && typeof token !== "number") || token === "") {
    throw new FlowError("UNAUTHENTICATED", `${answer.what} answered ${answer.status} without a field '${name}'.`);
  }
  return own(data, "access_token") === undefined ? { ...data, access_token: token } : data;
}

/** Fields of any answer: those of an object; anything else is `value`. */
function anyFields(answer: SecretAnswer): JsonObject {
  const data = jsonOf(answer) ?? answer.text;
  return isJsonObject(data) ? data : { value: data };
}

function ttlOf(fields: JsonObject, ttlField: unknown): number | undefined {
  const name = typeof ttlField === "string" && ttlField !== "" ? ttlField : "expires_in";
  return secondsOf(fieldAt(fields, name));
}
