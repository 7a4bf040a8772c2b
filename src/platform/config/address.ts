import { FlowError } from "../../schema/words/errors.ts";
import { fitsSocket } from "../unix-socket.ts";

/** A port number, 0 for any free one. Throws `FlowError` INVALID_SETTING that calls the value `name`. */
export function parsePort(name: string, text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new FlowError("INVALID_SETTING", `${name} must be a port from 0 to 65535, got '${text}'`);
}

/** A server's address without a slash at its end. Throws `FlowError` INVALID_SETTING that calls the value `name`. */
export function parseServerUrl(name: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new FlowError("INVALID_SETTING", `${name} must be an http or https address, got '${text}'`);
  }
  // They would be sent, and stored in a context, in plain sight.
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    const why = "must be an address alone, without user, password, query or fragment";
    throw new FlowError("INVALID_SETTING", `${name} ${why}; tokens go into FLOW_SERVER_TOKEN or a context`);
  }
  return url.href.replace(/\/+$/, "");
}

/** The absolute path of a unix socket. Throws `FlowError` INVALID_SETTING that calls the value `name`. */
export function parseSocket(name: string, text: string): string {
  if (!text.startsWith("/")) throw new FlowError("INVALID_SETTING", `${name} must be an absolute path, got '${text}'`);
  if (fitsSocket(text)) return text;
  throw new FlowError("INVALID_SETTING", `${name} is too long for a unix socket, which takes 103 bytes: '${text}'`);
}
