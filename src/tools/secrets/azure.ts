import { createHash } from "node:crypto";
import type { StoredCredential } from "../../ports/credentials.ts";
import type { AccessToken } from "../../ports/secret-source.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { addressOf, requiredText, secondsOf, textField } from "./fields.ts";
import type { ManagerParts, OpenManager } from "./manager.ts";
import { requestClientToken } from "./oauth2-client.ts";
import { jsonOf, refused, sender } from "./request.ts";

const API_VERSION = "7.4";
const LOGIN = "https://login.microsoftonline.com";
const SCOPE = "https://vault.azure.net/.default";

/**
 * `cloud_c` (alias `azure`): Key Vault, `GET /secrets/{name}[/{version}]?api-version=7.4`, with a token of client credentials from
 * the login endpoint. A path is the secret's name, `name/version`, or the secret's identifier with the vault's address. The
 * credential holds `tenant_id` (or `token_url`), `client_id`, `client_secret`, and `vault_url` or `vault`, its name.
 */
export const openAzure: OpenManager = (parts, definition, credential) => {
  if (credential === undefined) {
    throw new FlowError("INVALID_INPUT", "The entry has no 'auth': client credentials that reach cloud_c.");
  }
  const where = `Credential '${credential.name}'`;
  const ownVault = textField(credential.data, "vault_url", "vault");
  const { azureUrl } = parts.addresses;
  const known = ownVault === undefined ? azureUrl : vaultAddress(ownVault);
  const wanted = textField(definition, "vault");
  return {
    async read({ path, version }, signal) {
      const { base = wanted, name, version: written } = identifierOf(path);
      const address = base === undefined ? known : vaultAddress(base);
      if (address === undefined) {
        throw new FlowError("INVALID_INPUT", `${where} has no 'vault_url': which vault to read.`);
      }
      const vault = addressOf(`${where}: the vault's address`, address);
      if (base !== undefined) checkVault(vault, known);
      const token = await vaultToken(parts, where, credential);
      const at = [name, version ?? written].filter((part) => part !== undefined).map(encodeURIComponent);
      const url = new URL(`${vault.href.replace(/\/+$/, "")}/secrets/${at.join("/")}`);
      url.searchParams.set("api-version", API_VERSION);
      const send = sender(parts.send, azureUrl !== undefined && address === azureUrl);
      const answer = await send({ method: "GET", url, headers: { authorization: `Bearer ${token}` } }, signal);
      const body = jsonOf(answer);
      if (answer.status !== 200) throw refused(answer);
      const value = isJsonObject(body) ? own(body, "value") : undefined;
      if (typeof value === "string") return value;
      throw new FlowError("UNAVAILABLE", `${answer.what} answered without a value.`);
    },
  };
};

/** A vault by its name, or by its address. */
function vaultAddress(text: string): string {
  return /^[a-z0-9-]{1,127}$/i.test(text) ? `https://${text}.vault.azure.net` : text;
}

/** The vault's token must not go to whatever address a playbook writes: only to vaults, and to where the credential belongs. */
function checkVault({ protocol, hostname, origin }: URL, known: string | undefined): void {
  if (protocol === "https:" && VAULT_HOSTS.test(hostname)) return;
  if (known !== undefined && URL.canParse(known) && new URL(known).origin === origin) return;
  throw new FlowError("INVALID_INPUT", `'${hostname}' is no vault of cloud_c: set 'vault_url' in the credential.`);
}

const VAULT_HOSTS = /^[a-z0-9-]+\.vault\.(azure\.net|azure\.cn|usgovcloudapi\.net)$/i;

/** Name, `name/version`, or `https://<vault>/secrets/name/version`. */
function identifierOf(path: string): { base?: string; name: string; version?: string } {
  const match = /^(?:(?<base>https?:\/\/[^/]+)\/secrets\/)?(?<name>[^/]+)(?:\/(?<version>[^/]+))?\/?$/i.exec(
    path,
  )?.groups;
  if (match === undefined) {
    throw new FlowError("INVALID_INPUT", `'${path}' is no secret of cloud_c: its name, or name/version, is expected.`);
  }
  const { base, name = "", version } = match;
  return { name, ...defined({ base, version }) };
}

/** A token for the vault, kept as all tokens are. */
async function vaultToken(parts: ManagerParts, where: string, credential: StoredCredential): Promise<string> {
  const { data } = credential;
  const given = textField(data, "access_token", "token");
  if (given !== undefined && textField(data, "client_id") === undefined) return given;
  const { token } = await parts.tokens.get(keyOf(credential), async (): Promise<AccessToken> => {
    const { azureLoginUrl } = parts.addresses;
    const tokenUrl = textField(data, "token_url");
    const login = azureLoginUrl ?? textField(data, "login_url") ?? LOGIN;
    const tenant = () => encodeURIComponent(requiredText(where, data, "tenant_id"));
    const client = { ...data, token_url: tokenUrl ?? `${login.replace(/\/+$/, "")}/${tenant()}/oauth2/v2.0/token` };
    const scope = textField(data, "scope") ?? SCOPE;
    const send = sender(parts.send, tokenUrl === undefined && azureLoginUrl !== undefined);
    // Not the caller's signal: others wait for the same token.
    const fields = await requestClientToken(send, where, client, [scope], new AbortController().signal);
    const expiresAt = parts.now() + (secondsOf(fields["expires_in"]) ?? 0) * 1_000;
    return { token: String(fields["access_token"]), expiresAt };
  });
  return token;
}

function keyOf({ name, data }: StoredCredential): string {
  return `vault ${createHash("sha256")
    .update(JSON.stringify([name, data]))
    .digest("hex")}`;
}
