import { createHash, createHmac } from "node:crypto";
import type { RecordedRequest } from "./http-server.ts";

/**
 * The `Authorization` header that Signature Version 4 gives a request as it arrived, worked out by hand from the published
 * description: what a server compares with the header that it got.
 */
export function expectedAuthorization(request: RecordedRequest, secretAccessKey: string): string {
  const given = String(request.headers["authorization"]);
  const [, credential = "", signed = ""] = /Credential=([^,]+), SignedHeaders=([^,]+), Signature=/.exec(given) ?? [];
  const [accessKeyId, date = "", region = "", service = ""] = credential.split("/");
  const scope = `${date}/${region}/${service}/aws4_request`;
  const [path = "/", query = ""] = request.url.split("?");
  const canonical = [
    request.method,
    path,
    query.split("&").sort().join("&"),
    ...signed.split(";").map((name) => `${name}:${String(request.headers[name]).trim().replace(/ +/g, " ")}`),
    "",
    signed,
    sha256(request.body),
  ].join("\n");
  const toSign = ["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, sha256(canonical)].join("\n");
  let key: Buffer | string = `AWS4${secretAccessKey}`;
  for (const part of [date, region, service, "aws4_request"]) key = createHmac("sha256", key).update(part).digest();
  const signature = createHmac("sha256", key).update(toSign).digest("hex");
  return `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${signed}, Signature=${signature}`;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
