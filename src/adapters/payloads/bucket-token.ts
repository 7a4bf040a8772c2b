import * as v from "valibot";
import { assertionForm } from "../../platform/crypto/jwt-bearer.ts";
import { createSecret, type Secret } from "../../platform/crypto/secret.ts";
import { createTokenCache } from "../../platform/crypto/token-cache.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type ObjectClient, refusedBy } from "./object-http.ts";

/** A service account, as its key file names it. */
export interface BucketAccount {
  clientEmail: string;
  privateKey: Secret;
  tokenUri: string;
  /** Id of the key, for the header of the signed assertion. */
  keyId: string | undefined;
}

const AccountFile = v.object({
  client_email: v.pipe(v.string(), v.minLength(1)),
  private_key: v.pipe(v.string(), v.includes("PRIVATE KEY")),
  token_uri: v.exactOptional(v.pipe(v.string(), v.url()), "https://oauth2.googleapis.com/token"),
  private_key_id: v.exactOptional(v.string()),
});

/** The account of a key file's text. Throws `FlowError` INVALID_SETTING, which repeats nothing of the text. */
export function parseBucketAccount(text: string, file: string): BucketAccount {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), AccountFile), text);
  if (!parsed.success) {
    const wanted = "a service account's key in JSON, with client_email and private_key";
    throw new FlowError("INVALID_SETTING", `FLOW_CLOUD_BUCKET_ACCOUNT_FILE: ${file} is not ${wanted}`);
  }
  const { client_email, private_key, token_uri, private_key_id } = parsed.output;
  return {
    clientEmail: client_email,
    privateKey: createSecret(private_key),
    tokenUri: token_uri,
    keyId: private_key_id,
  };
}

/** Access tokens of a service account. */
export interface BucketTokens {
  /** A token that outlasts a request; one token request serves all callers. */
  token(signal?: AbortSignal): Promise<string>;
  /** The token at hand is refused. */
  forget(): void;
}

const SCOPE = "https://www.googleapis.com/auth/devstorage.read_write";
/** Lifetime of a token whose answer does not tell it. */
const LIFETIME_SECONDS = 3_600;
const TokenAnswer = v.object({
  access_token: v.pipe(v.string(), v.minLength(1)),
  expires_in: v.exactOptional(v.number(), LIFETIME_SECONDS),
});

/** Tokens by the signed grant (RFC 7523): the account's key signs the assertion. */
export function createBucketTokens(account: BucketAccount, client: ObjectClient, now: () => number): BucketTokens {
  const tokens = createTokenCache(now);
  let latest = "";
  const ask = async () => {
    const body = Buffer.from(await signed(account, now()));
    const headers = { "content-type": "application/x-www-form-urlencoded", "content-length": String(body.length) };
    const url = new URL(account.tokenUri);
    const answer = await client.send(async () => ({ method: "POST", url, headers, body: () => once(body) }));
    if (answer.status !== 200) throw await refusedBy("The token service of cloud_bucket", "a token for", answer);
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), TokenAnswer), await answer.body.text());
    if (!parsed.success) throw new FlowError("NOT_STORED", `${account.tokenUri} answered without an access_token`);
    latest = parsed.output.access_token;
    return { token: latest, expiresAt: now() + parsed.output.expires_in * 1_000 };
  };
  return {
    async token(signal) {
      const { token } = await tokens.get("", ask);
      signal?.throwIfAborted();
      return token;
    },
    forget: () => tokens.forget(latest),
  };
}

async function signed({ clientEmail, privateKey, tokenUri, keyId }: BucketAccount, now: number): Promise<string> {
  const account = { clientEmail, privateKey: privateKey.reveal(), keyId, audience: tokenUri };
  return await assertionForm(account, { scope: SCOPE }, now).catch((cause: unknown) => {
    const why = `the private key of ${clientEmail} cannot sign: it ${messageOf(cause)}`;
    throw new FlowError("NOT_STORED", `The store cloud_bucket: ${why}. Check FLOW_CLOUD_BUCKET_ACCOUNT_FILE`);
  });
}

async function* once(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body;
}
