import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { FlowError } from "../../schema/words/errors.ts";
import { createSecret, type Secret } from "../crypto/secret.ts";
import { setting } from "../setting.ts";

/** Settings of the proxy that calls to the outside go through; other programs know them too, also in small letters. */
export const PROXY_SETTINGS = {
  httpProxy: proxySetting("HTTP_PROXY", "Proxy of the tools' http:// calls, as http://user:password@host:port"),
  httpsProxy: proxySetting("HTTPS_PROXY", "Proxy of the tools' https:// calls, as http://user:password@host:port"),
  noProxy: setting({
    name: "NO_PROXY",
    alias: "no_proxy",
    meaning:
      "Hosts that are called without a proxy: names, their endings, host:port, addresses, CIDR, comma-separated; *",
    default: "none, and always localhost, loopback and link-local addresses",
    parse: (text) => Object.freeze((text ?? "").split(/[,\s]+/).filter((part) => part !== "")),
  }),
} as const;

/** What the settings say of proxies. */
export interface ProxyOptions {
  httpProxy?: Secret | undefined;
  httpsProxy?: Secret | undefined;
  noProxy?: readonly string[];
}

/** A proxy that a call goes through. */
export interface OutgoingProxy {
  /** Scheme, host and port: what may be shown. */
  origin: string;
  /** Value of `proxy-authorization`, where the proxy wants one. */
  authorization: string | undefined;
}

/** The proxy of a call to an address; undefined for a direct one. */
export type ProxyOf = (url: URL) => OutgoingProxy | undefined;

/** Which calls go through which proxy. */
export function proxyRules({ httpProxy, httpsProxy, noProxy = [] }: ProxyOptions): ProxyOf {
  const proxies: Record<string, OutgoingProxy | undefined> = {
    "http:": proxyAt(httpProxy),
    "https:": proxyAt(httpsProxy),
  };
  const exceptions = noProxy.map(exceptionOf);
  return (url) => {
    const proxy = proxies[url.protocol];
    if (proxy === undefined) return undefined;
    const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
    const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
    return isOwn(host) || exceptions.some((matches) => matches(host, port)) ? undefined : proxy;
  };
}

/** Requests to this machine, or to its metadata service, must never go through a proxy. */
function isOwn(host: string): boolean {
  if (isIP(host) === 0) return host === "localhost" || host.endsWith(".localhost") || host === METADATA_HOST;
  const range = ipaddr.process(host).range();
  return range === "loopback" || range === "linkLocal";
}

const METADATA_HOST = "metadata.google.internal";

function exceptionOf(text: string): (host: string, port: string) => boolean {
  if (text === "*") return () => true;
  if (ipaddr.isValidCIDR(text)) {
    const [network, bits] = ipaddr.parseCIDR(text);
    return (host) => {
      if (isIP(host) === 0) return false;
      const address = ipaddr.process(host);
      return address.kind() === network.kind() && address.match(network, bits);
    };
  }
  const [, written = text, onlyPort] = /^(\[[^\]]+\]|[^:]+):(\d+)$/.exec(text) ?? [];
  const name = written
    .replace(/^\[|\]$/g, "")
    .replace(/^\*?\./, "")
    .toLowerCase();
  return (host, port) =>
    (onlyPort === undefined || onlyPort === port) && (host === name || (isIP(host) === 0 && host.endsWith(`.${name}`)));
}

function proxyAt(address: Secret | undefined): OutgoingProxy | undefined {
  if (address === undefined) return undefined;
  const { origin, username, password } = new URL(address.reveal());
  const account = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const isOpen = username === "" && password === "";
  return { origin, authorization: isOpen ? undefined : `Basic ${Buffer.from(account).toString("base64")}` };
}

function proxySetting(name: string, meaning: string) {
  return setting({
    name,
    alias: name.toLowerCase(),
    meaning,
    default: "none",
    secret: true,
    parse: (text): Secret | undefined => {
      if (text === undefined) return undefined;
      // `host:port` is how many write it.
      const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
      const url = URL.canParse(full) ? new URL(full) : undefined;
      if ((url?.protocol === "http:" || url?.protocol === "https:") && canDecode(url)) return createSecret(full);
      // The text itself stays out of the message: it may hold a password.
      throw new FlowError("INVALID_SETTING", `${name} must look like http://user:password@host:3128 or https://…`);
    },
  });
}

function canDecode({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}
