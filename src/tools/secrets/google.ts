import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, own } from "../../schema/words/json.ts";
import { requiredText, textField } from "./fields.ts";
import type { OpenManager } from "./manager.ts";
import { jsonOf, refused, sender } from "./request.ts";

/** What access to secrets asks for. */
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/**
 * `cloud_a` (alias `gcp`): Secret Manager's REST API, `GET /v1/<name of the version>:access`. A path is
 * `projects/p/secrets/s/versions/v`, without its end for the newest version, or the secret's name alone, with the project of
 * the entry or the credential. The credential is a service account, or anything else that gives an access token.
 */
export const openGoogle: OpenManager = (parts, definition, credential) => {
  if (credential === undefined) {
    throw new FlowError("INVALID_INPUT", "The entry has no 'auth': a service account that reaches cloud_a.");
  }
  const where = `Credential '${credential.name}'`;
  const ownUrl = textField(credential.data, "base_url");
  const { googleUrl } = parts.addresses;
  const send = sender(parts.send, ownUrl === undefined && googleUrl !== undefined);
  const base = (location: string | undefined) =>
    ownUrl ?? googleUrl ?? `https://secretmanager.${location === undefined ? "" : `${location}.rep.`}googleapis.com`;
  const project = () =>
    textField(definition, "project") ?? requiredText(where, credential.data, "project_id", "project");
  return {
    async read({ path, version }, signal) {
      const { name, location } = resourceName(path, version, project);
      const { token } = await parts.token(credential, { scopes: [SCOPE] }, signal);
      const url = new URL(`${base(location).replace(/\/+$/, "")}/v1/${name}:access`);
      const answer = await send({ method: "GET", url, headers: { authorization: `Bearer ${token}` } }, signal);
      if (answer.status !== 200) throw refused(answer);
      return payloadOf(answer.what, jsonOf(answer));
    },
  };
};

function resourceName(path: string, version: string | undefined, project: () => string) {
  const match =
    /^(?:projects\/(?<project>[^/]+)\/(?:locations\/(?<location>[a-z0-9-]{1,32})\/)?secrets\/)?(?<secret>[^/]+)(?:\/versions\/(?<version>[^/]+))?$/.exec(
      path,
    )?.groups;
  if (match === undefined) {
    throw new FlowError("INVALID_INPUT", `'${path}' is no secret of cloud_a: projects/<p>/secrets/<s> is expected.`);
  }
  const { location } = match;
  const part = (text: string) => encodeURIComponent(text);
  const place = location === undefined ? "" : `locations/${part(location)}/`;
  const wanted = part(version ?? match["version"] ?? "latest");
  const name = `projects/${part(match["project"] ?? project())}/${place}secrets/${part(match["secret"] ?? "")}/versions/${wanted}`;
  return { name, location };
}

/** The secret of an answer, checked against the checksum that stands beside it. */
function payloadOf(what: string, data: Json | undefined): string {
  const payload = isJsonObject(data) ? own(data, "payload") : undefined;
  const base64 = isJsonObject(payload) ? own(payload, "data") : undefined;
  if (!isJsonObject(payload) || typeof base64 !== "string") {
    throw new FlowError("UNAVAILABLE", `${what} answered without a payload.`);
  }
  const bytes = Buffer.from(base64, "base64");
  const checksum = textField(payload, "dataCrc32c");
  if (checksum !== undefined && Number(checksum) !== crc32c(bytes)) {
    throw new FlowError("UNAVAILABLE", `${what}: the secret does not have the checksum that stands beside it.`);
  }
  return bytes.toString("utf8");
}

/** Castagnoli's polynomial, reflected. */
const POLYNOMIAL = 0x82f63b78;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
  return value >>> 0;
});

/** CRC-32C (RFC 3720, appendix B.4) of some bytes, from 0 to 2^32 - 1. */
export function crc32c(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (TABLE[(value ^ byte) & 255] ?? 0) ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}
