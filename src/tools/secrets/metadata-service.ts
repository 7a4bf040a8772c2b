import type { AccessToken, TokenOptions } from "../../ports/secret-source.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { secondsOf } from "./fields.ts";
import { jsonOf, refused, type SecretAnswer, type SendSecret, sender } from "./request.ts";
import { identityExpiry } from "./service-account.ts";

/** Where the machine's own identity is found. */
export interface MachineIdentity {
  /** Address of the metadata service that the operator has set, without a slash at its end. */
  metadataUrl: string | undefined;
  /** A token that the operator has given instead. */
  accessToken: string | undefined;
}

const METADATA_URL = "http://metadata.google.internal";
const ACCOUNT = "/computeMetadata/v1/instance/service-accounts/default";
/** How long an operator's token is taken to be good before it is looked at again. */
const GIVEN_MS = 300_000;

/**
 * The token of this machine's own identity, `auth: {source: adc}` (interface specification, Managed cloud MCP access): the
 * operator's, else that of the platform's metadata service. With an audience an identity token.
 */
export async function machineToken(
  send: SendSecret,
  identity: MachineIdentity,
  { scopes, audience }: TokenOptions,
  now: number,
  signal: AbortSignal,
): Promise<AccessToken> {
  if (audience === undefined && identity.accessToken !== undefined) {
    return { token: identity.accessToken, expiresAt: now + GIVEN_MS };
  }
  const url = new URL(
    `${identity.metadataUrl ?? METADATA_URL}${ACCOUNT}/${audience === undefined ? "token" : "identity"}`,
  );
  if (scopes !== undefined && audience === undefined) url.searchParams.set("scopes", scopes.join(","));
  if (audience !== undefined) {
    url.searchParams.set("audience", audience);
    url.searchParams.set("format", "full");
  }
  const answer = await ask(sender(send, identity.metadataUrl !== undefined), url, signal);
  if (answer.status !== 200) throw refused(answer);
  if (audience !== undefined) {
    const token = answer.text.trim();
    return { token, expiresAt: identityExpiry(answer.what, token) };
  }
  const data = jsonOf(answer);
  const token = isJsonObject(data) ? own(data, "access_token") : undefined;
  if (typeof token !== "string" || !isJsonObject(data)) {
    throw new FlowError("UNAUTHENTICATED", `${answer.what} answered without a field 'access_token'.`);
  }
  return { token, expiresAt: now + (secondsOf(data["expires_in"]) ?? 0) * 1_000 };
}

async function ask(send: SendSecret, url: URL, signal: AbortSignal): Promise<SecretAnswer> {
  try {
    return await send({ method: "GET", url, headers: { "metadata-flavor": "Google" } }, signal);
  } catch (error) {
    if (!(error instanceof FlowError)) throw error;
    const hint = "Is this a machine of that cloud? FLOW_METADATA_URL names another address";
    throw new FlowError(error.code, `The machine's own identity: ${error.message} ${hint}.`, { cause: error });
  }
}
