import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type JsonObject, own } from "../../schema/words/json.ts";
import { addressOf, requiredText, textField, wordsField } from "./fields.ts";
import { refused, type SendSecret } from "./request.ts";
import { formOf, tokenFields } from "./token-request.ts";

/**
 * The token of an `oauth2` credential (RFC 6749): client credentials, or the refresh token where the credential has one.
 * `client_auth: basic` sends the client in the `Authorization` header instead of the body; `params` are sent too. Gives the
 * fields of the answer.
 */
export async function requestClientToken(
  send: SendSecret,
  where: string,
  data: JsonObject,
  scopes: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<JsonObject> {
  const clientId = requiredText(where, data, "client_id");
  const clientSecret = textField(data, "client_secret");
  const isBasic = own(data, "client_auth") === "basic";
  const params = own(data, "params");
  const answer = await send(
    {
      method: "POST",
      url: addressOf(`${where}: 'token_url'`, requiredText(where, data, "token_url", "token_uri", "endpoint")),
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        ...(isBasic && { authorization: basic(clientId, clientSecret ?? "") }),
      },
      body: formOf({
        ...grantOf(where, data),
        ...(!isBasic && { client_id: clientId, client_secret: clientSecret ?? null }),
        scope: (scopes ?? wordsField(data, "scope", "scopes"))?.join(" ") ?? null,
        audience: textField(data, "audience") ?? null,
        resource: textField(data, "resource") ?? null,
        ...(isJsonObject(params) && params),
      }),
    },
    signal,
  );
  if (answer.status !== 200) throw refused(answer);
  return tokenFields(answer);
}

function grantOf(where: string, data: JsonObject): JsonObject {
  const refreshToken = textField(data, "refresh_token");
  const grant = textField(data, "grant_type") ?? (refreshToken === undefined ? "client_credentials" : "refresh_token");
  if (grant === "client_credentials") return { grant_type: grant };
  if (grant === "refresh_token") {
    return { grant_type: grant, refresh_token: requiredText(where, data, "refresh_token") };
  }
  throw new FlowError(
    "INVALID_INPUT",
    `${where} has grant_type '${grant}'; client_credentials and refresh_token are supported.`,
  );
}

/** Both parts are form-encoded first (RFC 6749, section 2.3.1). */
function basic(clientId: string, clientSecret: string): string {
  const encode = (text: string) => new URLSearchParams([["", text]]).toString().slice(1);
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString("base64")}`;
}
