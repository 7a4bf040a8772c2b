import assert from "node:assert/strict";
import { test } from "node:test";
import { type SignV4Request, signV4 } from "../../../src/tools/secrets/aws.ts";
import { expectedAuthorization } from "../../support/servers/sign-v4-check.ts";

// The published vectors of Signature Version 4 (aws-sig-v4-test-suite): key, date, service and host are those of the suite.

const SUITE = {
  service: "service",
  region: "us-east-1",
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  now: Date.UTC(2015, 7, 30, 12, 36, 0),
};
const SESSION_TOKEN =
  "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/" +
  "qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38" +
  "xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

type Vector = Partial<Omit<SignV4Request, "url">> & { path?: string };

const VECTORS: readonly [name: string, request: Vector, signedHeaders: string, signature: string][] = [
  [
    "get-vanilla",
    { method: "GET" },
    "host;x-amz-date",
    "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
  ],
  ["post-vanilla", {}, "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"],
  [
    "get-vanilla-query-order-key-case",
    { method: "GET", path: "/?Param2=value2&Param1=value1" },
    "host;x-amz-date",
    "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
  ],
  [
    "get-vanilla-utf8-query",
    { method: "GET", path: "/?ሴ=bar" },
    "host;x-amz-date",
    "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
  ],
  [
    "get-header-value-trim",
    { method: "GET", headers: { "My-Header1": " value1", "My-Header2": ' "a   b   c"' } },
    "host;my-header1;my-header2;x-amz-date",
    "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
  ],
  [
    "post-header-key-sort",
    { headers: { "My-Header1": "value1" } },
    "host;my-header1;x-amz-date",
    "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
  ],
  [
    "post-x-www-form-urlencoded",
    { headers: { "Content-Type": "application/x-www-form-urlencoded" }, body: "Param1=value1" },
    "content-type;host;x-amz-date",
    "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
  ],
  [
    "post-sts-header-before",
    { sessionToken: SESSION_TOKEN },
    "host;x-amz-date;x-amz-security-token",
    "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
  ],
];

for (const [name, { path = "/", ...request }, signedHeaders, signature] of VECTORS) {
  test(`the published vector ${name} is signed byte for byte`, async () => {
    const url = new URL(path, "https://example.amazonaws.com");
    const signed = await signV4({ method: "POST", sessionToken: undefined, ...SUITE, ...request, url });
    const credential = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
    assert.equal(
      signed.headers?.["authorization"],
      `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${signedHeaders}, Signature=${signature}`,
    );
    assert.equal(signed.headers?.["x-amz-date"], "20150830T123600Z");
  });
}

test("the check that the tests' server makes agrees with the vectors", async () => {
  const url = new URL("https://example.amazonaws.com/");
  const body = "Param1=value1";
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const signed = await signV4({ method: "POST", url, headers, body, sessionToken: undefined, ...SUITE });
  const arrived = { method: "POST", url: "/", headers: { ...signed.headers, host: url.host }, body };
  assert.equal(expectedAuthorization(arrived, SUITE.secretAccessKey), signed.headers?.["authorization"]);
  const tampered = expectedAuthorization({ ...arrived, body: "Param1=value2" }, SUITE.secretAccessKey);
  assert.notEqual(tampered, signed.headers?.["authorization"]);
});
