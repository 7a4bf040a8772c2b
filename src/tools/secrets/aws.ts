import { AwsV4Signer } from "aws4fetch";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { requiredText, textField } from "./fields.ts";
import type { OpenManager } from "./manager.ts";
import { jsonOf, refused, type SecretRequest, sender } from "./request.ts";
import type { SecretPath } from "./secret-path.ts";

const SERVICE = "secretsmanager";

/**
 * `cloud_b` (alias `aws`): Secrets Manager's `GetSecretValue` over its JSON 1.1 protocol, signed with Signature Version 4. A path
 * is the secret's name or ARN; `secret:key:stage:version`, as other tools of that cloud write it, selects a field and a version.
 * The credential holds `access_key_id`, `secret_access_key`, `region`, and `session_token` where there is one.
 */
export const openAws: OpenManager = (parts, definition, credential) => {
  if (credential === undefined) {
    throw new FlowError("INVALID_INPUT", "The entry has no 'auth': a credential with an access key of cloud_b.");
  }
  const where = `Credential '${credential.name}'`;
  const { data } = credential;
  const keys = {
    accessKeyId: requiredText(where, data, "access_key_id", "aws_access_key_id"),
    secretAccessKey: requiredText(where, data, "secret_access_key", "aws_secret_access_key"),
    sessionToken: textField(data, "session_token", "aws_session_token"),
  };
  const ownUrl = textField(data, "base_url", "endpoint_url");
  const { awsUrl } = parts.addresses;
  const send = sender(parts.send, ownUrl === undefined && awsUrl !== undefined);
  return {
    readPath: splitPath,
    async read({ path, version }, signal) {
      const region =
        regionOf(path) ?? textField(definition, "region") ?? requiredText(where, data, "region", "aws_region");
      const base = ownUrl ?? awsUrl ?? publicAddress(region);
      const request = await signV4({
        method: "POST",
        url: new URL(`${base.replace(/\/+$/, "")}/`),
        headers: {
          "content-type": "application/x-amz-json-1.1",
          "x-amz-target": `${SERVICE}.GetSecretValue`,
        },
        body: JSON.stringify({ SecretId: path, ...versionOf(version) }),
        service: SERVICE,
        region,
        now: parts.now(),
        ...keys,
      });
      const answer = await send(request, signal);
      const body = jsonOf(answer);
      if (answer.status !== 200) throw refused(answer, errorOf(body));
      return secretOf(answer.what, body);
    },
  };
};

/** `name:key:stage:version`; an ARN has six parts before its name. */
function splitPath(given: SecretPath): SecretPath {
  const parts = given.path.split(":");
  const head = given.path.startsWith("arn:") ? 7 : 1;
  const [key, stage, id] = parts.slice(head);
  const version = given.version ?? (id || stage);
  return {
    ...given,
    path: parts.slice(0, head).join(":"),
    ...(key && given.key === undefined && { key }),
    ...(version && { version }),
  };
}

/** Ids of versions are UUIDs; everything else is the label of a stage, such as `AWSPREVIOUS`. */
function versionOf(version: string | undefined): JsonObject {
  if (version === undefined) return {};
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(version)
    ? { VersionId: version }
    : { VersionStage: version };
}

function regionOf(path: string): string | undefined {
  return path.startsWith("arn:") ? path.split(":")[3] || undefined : undefined;
}

function publicAddress(region: string): string {
  if (!/^[a-z0-9-]{1,32}$/.test(region)) throw new FlowError("INVALID_INPUT", `'${region}' is no region of cloud_b.`);
  return `https://${SERVICE}.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
}

function secretOf(what: string, body: Json | undefined): string {
  const text = isJsonObject(body) ? own(body, "SecretString") : undefined;
  if (typeof text === "string") return text;
  const binary = isJsonObject(body) ? own(body, "SecretBinary") : undefined;
  if (typeof binary === "string") return Buffer.from(binary, "base64").toString("utf8");
  throw new FlowError("UNAVAILABLE", `${what} answered without a secret.`);
}

/** `{__type, Message}` as other errors are written. */
function errorOf(body: Json | undefined): Json {
  if (!isJsonObject(body)) return null;
  const type = textField(body, "__type")?.split("#").at(-1);
  const message = textField(body, "message", "Message");
  return { message: [type, message].filter((part) => part !== undefined).join(": ") };
}

/** A request to be signed, and the key that signs it. */
export interface SignV4Request extends SecretRequest {
  service: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | undefined;
  /** Milliseconds since 1970. */
  now: number;
}

/** The request with the headers of Signature Version 4; every header that it has is signed. */
export async function signV4(request: SignV4Request): Promise<SecretRequest> {
  const { method, url, headers, body, sessionToken, now } = request;
  const signer = new AwsV4Signer({
    method,
    url: url.href,
    headers: { ...headers },
    ...defined({ body }),
    accessKeyId: request.accessKeyId,
    secretAccessKey: request.secretAccessKey,
    ...defined({ sessionToken }),
    service: request.service,
    region: request.region,
    datetime: new Date(now).toISOString().replace(/[:-]|\.\d{3}/g, ""),
    allHeaders: true,
  });
  const signed = await signer.sign();
  return { ...request, headers: Object.fromEntries(signed.headers) };
}
