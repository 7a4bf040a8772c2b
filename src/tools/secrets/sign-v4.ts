import { AwsV4Signer } from "aws4fetch";
import type { SecretRequest } from "./request.ts";

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
    ...(body !== undefined && { body }),
    accessKeyId: request.accessKeyId,
    secretAccessKey: request.secretAccessKey,
    ...(sessionToken !== undefined && { sessionToken }),
    service: request.service,
    region: request.region,
    datetime: new Date(now).toISOString().replace(/[:-]|\.\d{3}/g, ""),
    allHeaders: true,
  });
  const signed = await signer.sign();
  return { ...request, headers: Object.fromEntries(signed.headers) };
}
