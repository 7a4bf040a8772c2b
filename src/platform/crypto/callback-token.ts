import { createHmac } from "node:crypto";
import { createSecret, type Secret } from "./secret.ts";

/** Name of the credential (type `bearer`) with which system playbooks call the gateway back. */
export const CALLBACK_CREDENTIAL = "gateway_callback";

/**
 * The token of callbacks to the gateway. It is derived from the operator's token, which server and gateway both have, so that
 * no further secret has to be distributed, and it does not reveal the operator's token. Without tokens the service is open to
 * its machine.
 */
export function callbackToken(serverToken: Secret | undefined): Secret {
  const key = serverToken?.reveal() ?? "";
  return createSecret(createHmac("sha256", key).update("flow: callbacks to the gateway").digest("base64url"));
}
