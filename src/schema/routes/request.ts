import type * as v from "valibot";
import { defined } from "../words/defined.ts";
import { FlowError } from "../words/errors.ts";
import type { ParametersOf, RouteContract } from "./contract.ts";

/* How a route is called: the other side of `serve`. Without any library, so that the page can use it too. */

type QueryValue<T> = string extends T ? T | number | undefined : T | undefined;
type Query<T> = { [Name in keyof T]: QueryValue<T[Name]> };
type Body<T> = T extends readonly unknown[] ? T : T extends object ? { [Key in keyof T]: T[Key] | undefined } : T;

type ParametersPart<C extends RouteContract> = [keyof ParametersOf<C>] extends [never]
  ? { params?: undefined }
  : { params: ParametersOf<C> };
type QueryPart<C extends RouteContract> = C extends { query: infer S extends v.GenericSchema }
  ? object extends v.InferInput<S>
    ? { query?: Query<v.InferInput<S>> }
    : { query: Query<v.InferInput<S>> }
  : { query?: undefined };
type BodyPart<C extends RouteContract> = C extends { body: infer S extends v.GenericSchema }
  ? C extends { bodyOptional: true }
    ? { body?: Body<v.InferInput<S>> }
    : { body: Body<v.InferInput<S>>; json?: undefined } | { body?: undefined; json: string | Uint8Array<ArrayBuffer> }
  : { body?: undefined };

/**
 * What a call of a route says, typed by its contract: parameters of the path as they are (not encoded), query and body. What
 * is undefined is not sent. `json` is the body of a caller that has its text, or that in UTF-8.
 */
export type RouteInput<C extends RouteContract> = ParametersPart<C> & QueryPart<C> & BodyPart<C>;

/** A call as it travels. */
export interface RouteRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below the server's address, encoded, with its query. */
  path: string;
  /** JSON text, or that in UTF-8. */
  body?: string | Uint8Array<ArrayBuffer>;
}

/** Any contract's {@link RouteInput}. */
interface AnyInput {
  params?: Readonly<Record<string, string>> | undefined;
  query?: Readonly<Record<string, string | number | undefined>> | undefined;
  body?: unknown;
  json?: string | Uint8Array<ArrayBuffer> | undefined;
}

/**
 * The request for a call of a route. Throws `FlowError` NOT_FOUND for a parameter that no address can have: an empty part,
 * `.` and `..` would make it the address of another route.
 */
export function requestOf<C extends RouteContract>(contract: C, input: RouteInput<C>): RouteRequest {
  const { params = {}, query = {}, body, json }: AnyInput = input;
  const path = contract.path.replace(/:(\w+)(\{[^}]*\})?/g, (_, name: string, pattern?: string) => {
    const value = params[name] ?? "";
    return pattern === undefined
      ? encoded(value, name)
      : value
          .split("/")
          .map((part) => encoded(part, name))
          .join("/");
  });
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  const text = json ?? (body === undefined ? undefined : JSON.stringify(body));
  return {
    method: contract.method.toUpperCase() as RouteRequest["method"],
    path: given.size === 0 ? path : `${path}?${given}`,
    ...defined({ body: text }),
  };
}

function encoded(part: string, name: string): string {
  if (part === "" || part === "." || part === "..") {
    throw new FlowError("NOT_FOUND", `There is no ${name.replaceAll("_", " ")} '${part}': no address can hold it`);
  }
  // Half a character cannot be part of an address.
  return encodeURIComponent(part.replace(/\p{Surrogate}/gu, "\ufffd"));
}
