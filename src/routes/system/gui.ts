import type { Context, MiddlewareHandler } from "hono";
import type { GuiFile, GuiFiles } from "../../platform/http/page-files.ts";
import type { RouteEnvironment } from "../http/request-context.ts";

/** First segments of the page's own addresses. Everything else that is no file of it is for the routes. */
const PAGES = new Set([
  "",
  "executions",
  "catalog",
  "entry",
  "register",
  "triggers",
  "inbox",
  "agents",
  "operations",
  "credentials",
  "access",
  "login",
]);

/**
 * Nothing from elsewhere, nothing written into the page: a text that got in as markup could load no script, send nothing
 * away, and no other page can frame this one.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  // Files of tasks, which the server sends under a policy of their own.
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * Answers with the browser's page and its files. They hold nothing of the installation and need no token: what the page shows
 * it asks the API for, which decides.
 */
export function guiFiles(files: GuiFiles): MiddlewareHandler<RouteEnvironment> {
  return async (c, next) => {
    const file = c.req.method === "GET" || c.req.method === "HEAD" ? found(files, c.req.path) : undefined;
    return file === undefined ? await next() : answer(c, file);
  };
}

function found(files: GuiFiles, path: string): GuiFile | undefined {
  const file = path === "/index.html" ? undefined : files.get(path);
  if (file !== undefined) return file;
  // `//flow/health` is no page, but another spelling of an address that is for the routes.
  if (path.startsWith("//")) return undefined;
  return PAGES.has(path.split("/")[1] ?? "") ? files.get("/index.html") : undefined;
}

function answer(c: Context, file: GuiFile): Response {
  const headers: Record<string, string> = {
    "content-type": file.contentType,
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": file.immutable ? "public, max-age=31536000, immutable" : "no-cache",
    etag: file.etag,
    vary: "Accept-Encoding",
  };
  if (c.req.header("if-none-match") === file.etag) return c.body(null, 304, headers);
  const takesGzip = /\bgzip\b/.test(c.req.header("accept-encoding") ?? "");
  if (!takesGzip || file.gzip === undefined) return c.body(file.bytes, 200, headers);
  return c.body(file.gzip, 200, { ...headers, "content-encoding": "gzip" });
}
