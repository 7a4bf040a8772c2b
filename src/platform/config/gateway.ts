import ipaddr from "ipaddr.js";
import { FlowError } from "../../schema/words/errors.ts";
import type { AddressRange } from "../http/client-address.ts";
import { countSetting, secondsSetting, setting } from "../setting.ts";
import { parsePort, parseServerUrl } from "./address.ts";
import { IDP_SETTINGS } from "./identity-providers.ts";

/**
 * Settings of the gateway (interface specification, Gateway settings). Times are milliseconds in the program. That the gateway
 * listens on FLOW_HOST, and calls the server with FLOW_SERVER_TOKEN, are settings of all roles.
 */
export const GATEWAY_SETTINGS = {
  gatewayPort: portSetting("FLOW_GATEWAY_PORT", "Port of the gateway, for browsers; 0 takes a free one", 8090),
  gatewayInternalPort: portSetting(
    "FLOW_GATEWAY_INTERNAL_PORT",
    "Port on which the gateway takes callbacks of playbooks, never to be reached from outside; 0 takes a free one",
    8091,
  ),
  gatewayInternalHost: setting({
    name: "FLOW_GATEWAY_INTERNAL_HOST",
    meaning: "Address that the gateway listens on for callbacks of playbooks",
    default: "FLOW_HOST",
    parse: (text) => text,
  }),
  gatewayInternalUrl: urlSetting(
    "FLOW_GATEWAY_INTERNAL_URL",
    "Where workers reach this very gateway process for callbacks, as http://<address of the pod>:8091",
    "http:// with host and port of the callbacks",
  ),
  gatewayServerUrl: urlSetting("FLOW_BASE_URL", "Server that the gateway stands in front of", "FLOW_SERVER_URL"),
  gatewayPublicUrl: urlSetting("GATEWAY_PUBLIC_URL", "Address of the gateway as browsers know it", "none"),
  corsOrigins: setting({
    name: "CORS_ALLOWED_ORIGINS",
    meaning: "Origins whose pages may call the gateway, comma-separated; every one must be in the list",
    default: "the origin of GATEWAY_PUBLIC_URL alone",
    parse: (text) => (text === undefined ? undefined : Object.freeze(list(text).map(parseOrigin))),
  }),
  authBypass: flagSetting(
    "GATEWAY_AUTH_BYPASS",
    "true makes the gateway pass on every call as the operator's: for use on your own machine only",
  ),
  authBypassAnywhere: flagSetting(
    "FLOW_GATEWAY_AUTH_BYPASS_ANYWHERE",
    "true allows GATEWAY_AUTH_BYPASS=true on an address that other machines reach: they may do anything",
  ),
  trustedProxies: setting({
    name: "FLOW_GATEWAY_TRUSTED_PROXIES",
    meaning: "Addresses (CIDR, comma-separated) of proxies before the gateway, whose X-Forwarded-For is believed",
    default: "none",
    parse: (text) => Object.freeze(list(text ?? "").map(parseRange)),
  }),
  loginsPerMinute: countSetting(
    "FLOW_GATEWAY_LOGINS_PER_MINUTE",
    "Logins of one address at one identity provider within a minute; further ones are answered with 429",
    60,
    1_000_000,
  ),
  loginMs: secondsSetting("FLOW_GATEWAY_LOGIN_SECONDS", "Longest time for the playbook of a login", 15),
  sessionMs: secondsSetting("FLOW_SESSION_SECONDS", "How long a session lasts after its login", 43_200),
  sessionIdleMs: secondsSetting("FLOW_SESSION_IDLE_SECONDS", "How long a session lasts without being used", 7_200),
  ...IDP_SETTINGS,
} as const;

function portSetting(name: string, meaning: string, fallback: number) {
  return setting({ name, meaning, default: String(fallback), parse: (text) => parsePort(name, text ?? `${fallback}`) });
}

function urlSetting(name: string, meaning: string, fallback: string) {
  return setting({
    name,
    meaning,
    default: fallback,
    parse: (text) => (text === undefined ? undefined : parseServerUrl(name, text)),
  });
}

function flagSetting(name: string, meaning: string) {
  return setting({
    name,
    meaning,
    default: "false",
    parse: (text) => {
      const value = text?.toLowerCase() ?? "false";
      if (value === "true" || value === "false") return value === "true";
      throw new FlowError("INVALID_SETTING", `${name} must be true or false, got '${text}'`);
    },
  });
}

function list(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** The origin as browsers send it. A wildcard would let every page act as the logged-in user. */
function parseOrigin(text: string): string {
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin = url !== undefined && url.href === `${url.origin}/` && !url.hostname.includes("*");
  if (isOrigin) return url.origin;
  const why = text.includes("*")
    ? "there are no wildcards, name each origin"
    : "an origin is https://host or https://host:port";
  throw new FlowError("INVALID_SETTING", `CORS_ALLOWED_ORIGINS: '${text}' cannot be used: ${why}`);
}

function parseRange(text: string): AddressRange {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (ipaddr.isValid(text)) {
    const address = ipaddr.parse(text);
    return [address, address.kind() === "ipv4" ? 32 : 128];
  }
  throw new FlowError("INVALID_SETTING", `FLOW_GATEWAY_TRUSTED_PROXIES: '${text}' is no address and no CIDR`);
}
