import { FlowError } from "../../schema/words/errors.ts";
import { createSecret, type Secret } from "../crypto/secret.ts";
import { secondsSetting, setting } from "../setting.ts";

/** Settings of the secret sources for the keychain. Addresses that an operator sets here may be private. */
export const KEYCHAIN_SETTINGS = {
  keychainRequestMs: secondsSetting(
    "FLOW_KEYCHAIN_REQUEST_SECONDS",
    "Longest time of one request for a token or a secret",
    30,
  ),
  googleUrl: address(
    "FLOW_SECRETS_CLOUD_A_URL",
    "Address of the secret manager cloud_a (gcp)",
    "https://secretmanager.googleapis.com",
  ),
  awsUrl: address(
    "FLOW_SECRETS_CLOUD_B_URL",
    "Address of the secret manager cloud_b (aws)",
    "https://secretsmanager.<region>.amazonaws.com",
  ),
  azureUrl: address(
    "FLOW_SECRETS_CLOUD_C_URL",
    "Address of the vault of the secret manager cloud_c (azure)",
    "the credential's vault_url",
  ),
  azureLoginUrl: address(
    "FLOW_SECRETS_CLOUD_C_LOGIN_URL",
    "Address where cloud_c gives tokens",
    "https://login.microsoftonline.com",
  ),
  metadataUrl: address(
    "FLOW_METADATA_URL",
    "Address of the machine's metadata service, for auth {source: adc}",
    "http://metadata.google.internal",
  ),
  adcAccessToken: setting({
    name: "FLOW_ADC_ACCESS_TOKEN",
    meaning: "Access token for auth {source: adc}, instead of the metadata service",
    default: "none",
    secret: true,
    parse: (text) => (text === undefined ? undefined : headerToken("FLOW_ADC_ACCESS_TOKEN", text)),
  }),
  mcpTokenHosts: setting({
    name: "FLOW_MCP_TOKEN_HOSTS",
    meaning:
      "Hosts of MCP servers that get the machine's own token although they are not registered: host or *.domain, comma-separated, or all",
    default: "*.googleapis.com; all in a local run",
    parse: (text) => hosts("FLOW_MCP_TOKEN_HOSTS", text ?? "*.googleapis.com"),
  }),
} as const;

function address(name: string, meaning: string, fallback: string) {
  return setting({
    name,
    meaning,
    default: fallback,
    parse: (text) => (text === undefined ? undefined : baseUrl(name, text)),
  });
}

/** Without a slash at its end. */
function baseUrl(name: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (isPlain && (url?.protocol === "http:" || url?.protocol === "https:")) return url.href.replace(/\/+$/, "");
  throw new FlowError("INVALID_SETTING", `${name} must be an http or https address without user, query and fragment`);
}

/** `all`, or names of hosts, each of which may have `*.` before it. */
function hosts(name: string, text: string): "all" | readonly string[] {
  const words = text.split(",").map((word) => word.trim().toLowerCase());
  const given = words.filter((word) => word !== "");
  if (given.length === 1 && given[0] === "all") return "all";
  const wrong = given.find((word) => !/^(\*\.)?[\w-]+(\.[\w-]+)*$/.test(word));
  if (wrong === undefined) return Object.freeze(given);
  throw new FlowError(
    "INVALID_SETTING",
    `${name} must be hosts such as mcp.example.com or *.example.com, got '${wrong}'`,
  );
}

/** Text that is invalid in a header would fail each request. The text itself stays out of the message. */
function headerToken(name: string, text: string): Secret {
  if (/^[\x21-\x7e]+$/.test(text)) return createSecret(text);
  throw new FlowError("INVALID_SETTING", `${name} must be of visible ASCII characters, without spaces`);
}
