import { FlowError } from "../../schema/words/errors.ts";
import { setting } from "../setting.ts";
import { parseServerUrl } from "./address.ts";

/** Settings of the address by which browsers and other machines know a server or a gateway. */
export const PUBLIC_SETTINGS = {
  publicUrl: setting({
    name: "FLOW_PUBLIC_URL",
    meaning:
      "Address of the server, and of the gateway, behind a reverse proxy; its path is what stands before each of theirs",
    default: "none; of the gateway GATEWAY_PUBLIC_URL",
    parse: (text) => (text === undefined ? undefined : parseServerUrl("FLOW_PUBLIC_URL", text)),
  }),
  publicPathStripped: setting({
    name: "FLOW_PUBLIC_PATH_STRIPPED",
    meaning:
      "true where the reverse proxy takes the path of FLOW_PUBLIC_URL away, and that path begins like one of the program's own",
    default: "false: calls are taken with the path and without it",
    parse: (text) => {
      const value = text?.toLowerCase() ?? "false";
      if (value === "true" || value === "false") return value === "true";
      throw new FlowError("INVALID_SETTING", `FLOW_PUBLIC_PATH_STRIPPED must be true or false, got '${text}'`);
    },
  }),
} as const;

/** Where others find a server or a gateway. */
export interface PublicAddress {
  /** Without a slash at its end. */
  url: string;
  /** `https://host:port` */
  origin: string;
  host: string;
  /** What stands before each path: `/flow`, or nothing. */
  path: string;
}

/** The parts of a public address; undefined for an empty one. */
export function publicAddress(url: string | undefined): PublicAddress | undefined {
  if (url === undefined) return undefined;
  const { origin, host, pathname } = new URL(url);
  return { url, origin, host, path: pathname.replace(/\/+$/, "") };
}

/** The address of a request without the public path before it, where it has one. */
export function withoutPublicPath(address: string, path: string): string {
  if (path === "" || !address.startsWith(path)) return address;
  const rest = address.slice(path.length);
  if (rest === "" || rest.startsWith("?")) return `/${rest}`;
  return rest.startsWith("/") ? rest : address;
}

/** What is cut off before each path of a call, as a part of where to listen. */
export function publicPathOf(
  { publicPathStripped }: { publicPathStripped: boolean },
  own: PublicAddress | undefined,
): { publicPath?: string } {
  return own === undefined || own.path === "" || publicPathStripped ? {} : { publicPath: own.path };
}
