import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { isLoopback } from "../http/loopback.ts";
import { setting } from "../setting.ts";

/** A provider whose addresses are set and not discovered. */
export interface IdpSettings {
  issuer: string;
  jwksUri: string;
  audience: string;
  /** What people call it; default: its domain. */
  name?: string;
  /** Login page and token endpoint. Set both, or they are requested from the issuer. */
  authorizationEndpoint?: string;
  tokenEndpoint?: string;
}

/** Identity providers whose ID tokens are believed. */
export const IDP_SETTINGS = {
  idpDomains: setting({
    name: "FLOW_IDP_DOMAINS",
    meaning: "Domains of identity providers that people may log in with, comma-separated; found by OpenID discovery",
    default: "none: no logins",
    parse: (text) => Object.freeze((text ?? "").split(",").flatMap(parseDomain)),
  }),
  idpAudience: setting({
    name: "FLOW_IDP_AUDIENCE",
    meaning: "Whom their ID tokens must be for: the client id of the browser application",
    default: "none; needed with FLOW_IDP_DOMAINS",
    parse: (text) => text,
  }),
  idpName: setting({
    name: "FLOW_IDP_NAME",
    meaning: "Name of the system playbooks' folder below api_integration/",
    default: "idp",
    parse: (text) => {
      if (text === undefined || /^[\w-]{1,64}$/.test(text)) return text ?? "idp";
      const rule = "must be at most 64 letters, digits, '-' and '_'";
      throw new FlowError("INVALID_SETTING", `FLOW_IDP_NAME ${rule}, got '${text}'`);
    },
  }),
  idpProviders: setting({
    name: "FLOW_IDP_CONFIG",
    meaning: 'Providers without discovery, as {"<domain>": {"issuer": …, "jwks_uri": …, "audience": …}}',
    default: "none",
    parse: (text): ReadonlyMap<string, IdpSettings> => (text === undefined ? new Map() : parseProviders(text)),
  }),
} as const;

/** The issuers of these providers, each once; one that is found by discovery is `https://<domain>`. */
export function idpIssuers({
  idpDomains,
  idpProviders,
}: {
  idpDomains: readonly string[];
  idpProviders: ReadonlyMap<string, IdpSettings>;
}): string[] {
  const discovered = idpDomains.filter((domain) => !idpProviders.has(domain)).map((domain) => `https://${domain}`);
  const issuers = [...discovered, ...[...idpProviders.values()].map(({ issuer }) => issuer)];
  // The same with and without a slash at its end, as a login compares them.
  return [...new Map(issuers.map((issuer) => [issuer.replace(/\/+$/, ""), issuer])).values()];
}

/** Names are compared without their case; a port may follow. */
function parseDomain(text: string): string[] {
  const domain = text.trim().toLowerCase();
  if (domain === "") return [];
  if (domain.length <= 255 && /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/.test(domain)) return [domain];
  throw new FlowError(
    "INVALID_SETTING",
    `FLOW_IDP_DOMAINS: '${text.trim()}' is no domain, as login.example.com is one`,
  );
}

function parseProviders(text: string): ReadonlyMap<string, IdpSettings> {
  const value = parsed(text);
  if (!isJsonObject(value)) throw invalid("must be a JSON object of providers by their domains");
  return new Map(
    Object.entries(value).map(([domain, provider]) => {
      const name = domain.trim().toLowerCase();
      if (!isJsonObject(provider)) throw invalid(`${domain} must be an object with issuer, jwks_uri and audience`);
      const at = (key: string) => {
        const given = own(provider, key);
        if (typeof given === "string" && given !== "") return given;
        throw invalid(`${domain} must have ${key}, a text`);
      };
      const addressAt = (key: string) => {
        const address = at(key);
        if (isSafe(address)) return address;
        throw invalid(`${key} of ${domain} must begin with https://; http:// is for this machine only`);
      };
      const has = (key: string) => own(provider, key) !== undefined;
      return [
        name,
        {
          issuer: at("issuer"),
          jwksUri: addressAt("jwks_uri"),
          audience: at("audience"),
          ...(has("name") && { name: at("name") }),
          ...(has("authorization_endpoint") && { authorizationEndpoint: addressAt("authorization_endpoint") }),
          ...(has("token_endpoint") && { tokenEndpoint: addressAt("token_endpoint") }),
        },
      ];
    }),
  );
}

/** An attacker who can change the keys in transit can log in as any user. */
function isSafe(address: string): boolean {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  return url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function invalid(why: string): FlowError {
  return new FlowError("INVALID_SETTING", `FLOW_IDP_CONFIG: ${why}`);
}

/** Settings of commands that log in at an identity provider. */
export const LOGIN_SETTINGS = {
  idpClientId: setting({
    name: "FLOW_IDP_CLIENT_ID",
    meaning: "Id under which 'flow login' is registered at the identity provider, as a public client with PKCE",
    default: "none: 'flow login' takes an ID token",
    parse: (text) => {
      if (text === undefined || (/^[\x21-\x7e]+$/.test(text) && text.length <= 255)) return text;
      throw new FlowError("INVALID_SETTING", "FLOW_IDP_CLIENT_ID must be of at most 255 visible ASCII characters");
    },
  }),
} as const;
