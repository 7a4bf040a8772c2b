import type { HttpRequest } from "./request.ts";

/** Longest chain of redirects that is followed. */
export const REDIRECTS_MAX = 10;

/**
 * The request that follows a redirect answer, or undefined when the answer is final (no redirect status, no location).
 * Throws TypeError when the location is not a URL of http or https.
 *
 * 303 becomes GET, and so does a POST that is answered 301 or 302, as every browser does; 307 and 308 repeat the
 * request. Another origin (scheme, host or port) never sees a secret of the first one.
 */
export function followRedirect(
  request: HttpRequest,
  status: number,
  location: string | undefined,
): HttpRequest | undefined {
  if (location === undefined || ![301, 302, 303, 307, 308].includes(status)) return undefined;
  const url = new URL(location, request.url);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new TypeError(`scheme ${url.protocol} is not followed`);
  url.username = "";
  url.password = "";
  if (url.hash === "") url.hash = request.url.hash;

  const headers = { ...request.headers };
  let { method, body } = request;
  if ((status === 303 && method !== "HEAD") || ((status === 301 || status === 302) && method === "POST")) {
    method = "GET";
    body = undefined;
    for (const name of Object.keys(headers)) {
      if (name.startsWith("content-") || name === "idempotency-key") delete headers[name];
    }
  }
  if (url.origin !== request.url.origin) {
    for (const name of Object.keys(headers)) {
      if (name === "host" || request.secretHeaders.has(name) || SECRET_HEADER.test(name)) delete headers[name];
    }
  }
  return { ...request, method, url, headers, body };
}

/**
 * Authors also write secrets into `headers`, without marking them. A header with such a word in its name is dropped too: losing
 * a harmless one on the way to a foreign origin costs an error, leaking a secret costs the secret.
 */
const SECRET_HEADER = /auth|cookie|token|secret|session|password|signature|credential|api-?_?key/;
