import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import type { HmacScheme, WebhookVerification } from "../../../src/schema/triggers/webhook.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { Delivery } from "../../../src/services/webhooks/signature-schemes.ts";
import { verifyDelivery } from "../../../src/services/webhooks/verify-delivery.ts";

type Headers = Record<string, string | undefined>;

/** A delivery that is genuine, and what makes it another one. */
interface Vector {
  verify: Pick<WebhookVerification, "preset" | "hmac">;
  credential: JsonObject;
  headers: Headers;
  body: string;
  /** Seconds since 1970. */
  at: number;
  /** Header with the proof. */
  proof: string;
}

const SLACK_BODY =
  "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar" +
  "&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com" +
  "%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";

/** GitHub's, Slack's and Standard Webhooks' vectors are those of their documentation; the others were made with `openssl dgst -hmac`. */
const VECTORS: Readonly<Record<string, Vector>> = {
  github: {
    verify: { preset: "github" },
    credential: { secret: "It's a Secret to Everybody" },
    headers: { "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17" },
    body: "Hello, World!",
    at: 0,
    proof: "x-hub-signature-256",
  },
  slack: {
    verify: { preset: "slack" },
    credential: { secret: "8f742231b10e8888abcd99yyyzzz85a5" },
    headers: {
      "x-slack-request-timestamp": "1531420618",
      "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
    body: SLACK_BODY,
    at: 1_531_420_618,
    proof: "x-slack-signature",
  },
  standard_webhooks: {
    verify: { preset: "standard_webhooks" },
    credential: { secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },
    headers: {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    body: '{"test": 2432232314}',
    at: 1_614_265_330,
    proof: "webhook-signature",
  },
  stripe: {
    verify: { preset: "stripe" },
    credential: { secret: "whsec_test_secret" },
    headers: {
      "stripe-signature": "t=1492774577,v1=654b43d3508ecadb3f8cefc4bc7d3d2bdc5ba9e03bf2c89b2d0657a8e24e4543",
    },
    body: '{"id":"evt_1","object":"event"}',
    at: 1_492_774_577,
    proof: "stripe-signature",
  },
  "hmac in base64 with SHA-512": {
    verify: {
      preset: "hmac",
      hmac: scheme({ header: "x-sign", algorithm: "sha512", encoding: "base64", prefix: "" }),
    },
    credential: { secret: "k" },
    headers: { "x-sign": "bL+01rTCtNdDuCU+WqapOgDONEHjlTLI+BFHu3+ThrxOyFMUesoszps/aejpbr8jp9oo9JNM452scI4mh7eBgA==" },
    body: "Hello, World!",
    at: 0,
    proof: "x-sign",
  },
  "hmac over an id, a time and the body": {
    verify: {
      preset: "hmac",
      hmac: scheme({
        header: "x-sign",
        algorithm: "sha1",
        prefix: "sha1=",
        payload: "{header:X-Message-Id}|{timestamp}|{body}",
        timestampHeader: "x-time",
        toleranceMs: 60_000,
      }),
    },
    credential: { secret: "k" },
    headers: {
      "x-message-id": "msg1",
      "x-time": "2026-01-02T03:04:05.678Z",
      "x-sign": "sha1=1084100837a787e70ff58849f75a1d15390838a8",
    },
    body: '{"a":1}',
    at: Date.parse("2026-01-02T03:04:05.678Z") / 1_000,
    proof: "x-sign",
  },
};

function scheme(given: Partial<HmacScheme>): HmacScheme {
  const byDefault = { header: "x-sign", algorithm: "sha256", encoding: "hex", prefix: "" } as const;
  return { ...byDefault, payload: "{body}", toleranceMs: 300_000, ...given };
}

function isGenuine(
  { verify, credential, headers, body, at }: Vector,
  { credentials = [credential], seconds = 0 }: { credentials?: JsonObject[]; seconds?: number } = {},
): boolean {
  const delivery: Delivery = { headers, body: Buffer.from(body) };
  return verifyDelivery(verify, credentials, delivery, (at + seconds) * 1_000).isGenuine;
}

function withHeader(vector: Vector, name: string, value: string | undefined): Vector {
  return { ...vector, headers: { ...vector.headers, [name]: value } };
}

for (const [name, vector] of Object.entries(VECTORS)) {
  const { body, proof, headers, credential } = vector;
  const signed = headers[proof] ?? "";

  test(`${name}: the known delivery is genuine, with a new secret before the old one too`, () => {
    assert.equal(isGenuine(vector), true);
    assert.equal(isGenuine(vector, { credentials: [{ secret: "b3RoZXI=" }, credential] }), true);
    const list = { secret: ["b3RoZXI=", credential["secret"] ?? ""] };
    assert.equal(isGenuine(vector, { credentials: [list] }), true, "a list in one credential");
  });

  test(`${name}: another body, secret or signature is not`, () => {
    assert.equal(isGenuine({ ...vector, body: `${body} ` }), false);
    assert.equal(isGenuine({ ...vector, body: "" }), false);
    for (const credentials of [[], [{ secret: "b3RoZXI=" }], [{ secret: "" }], [{ token: "x" }], [{ secret: 7 }]]) {
      assert.equal(isGenuine(vector, { credentials }), false, JSON.stringify(credentials));
    }
    const last = signed.trimEnd().replace(/=*$/, "").at(-2) === "1" ? "2" : "1";
    assert.equal(isGenuine(withHeader(vector, proof, signed.replace(/.(.=*)$/, `${last}$1`))), false, "altered");
  });

  test(`${name}: a header that is missing, cut, empty, doubled or in another encoding proves nothing`, () => {
    for (const other of Object.keys(headers))
      assert.equal(isGenuine(withHeader(vector, other, undefined)), false, other);
    const wrong = [
      "",
      signed.slice(0, -3),
      `${signed}00`,
      `${signed}, ${signed}`,
      signed.replace(/[0-9]/g, "-"),
      `x${signed}`,
    ];
    for (const text of wrong) assert.equal(isGenuine(withHeader(vector, proof, text)), false, text);
  });
}

for (const name of ["slack", "standard_webhooks", "stripe"] as const) {
  test(`${name}: five minutes before and after are taken, a second more is not`, () => {
    const vector = VECTORS[name] as Vector;
    for (const seconds of [-300, 300]) assert.equal(isGenuine(vector, { seconds }), true, String(seconds));
    for (const seconds of [-301, 301]) assert.equal(isGenuine(vector, { seconds }), false, String(seconds));
  });
}

test("the time of a scheme of the author's has its own tolerance, and is part of what is signed", () => {
  const vector = VECTORS["hmac over an id, a time and the body"] as Vector;
  assert.equal(isGenuine(vector, { seconds: 60 }), true);
  assert.equal(isGenuine(vector, { seconds: 61 }), false);
  assert.equal(isGenuine(withHeader(vector, "x-time", "2026-01-02T03:04:05.679Z")), false);
  assert.equal(isGenuine(withHeader(vector, "x-time", "yesterday")), false);
  assert.equal(isGenuine(withHeader(vector, "x-message-id", "msg2")), false);
});

test("times may be seconds or milliseconds", () => {
  const hmac = scheme({ payload: "{timestamp}.{body}", timestampHeader: "x-time" });
  for (const time of ["1767323045", "1767323045678"]) {
    const sign = createHmac("sha256", "k").update(`${time}.x`).digest("hex");
    const headers = { "x-time": time, "x-sign": sign };
    const vector = { verify: { preset: "hmac", hmac }, credential: { secret: "k" }, headers } as const;
    assert.equal(isGenuine({ ...vector, body: "x", at: 1_767_323_045, proof: "x-sign" }), true, time);
    assert.equal(isGenuine({ ...vector, body: "x", at: 1_767_324_045, proof: "x-sign" }), false, time);
  }
});

test("of several signatures in one header one must be genuine", () => {
  const stripe = VECTORS["stripe"] as Vector;
  const signed = stripe.headers["stripe-signature"] ?? "";
  const other = "0".repeat(64);
  const withStripe = (text: string) => isGenuine(withHeader(stripe, "stripe-signature", text));
  assert.equal(withStripe(`${signed},v1=${other}`), true);
  assert.equal(withStripe(signed.replace("v1=", `v1=${other},v1=`)), true);
  assert.equal(withStripe(`${signed},v0=${other}`), true, "signatures of other schemes are passed over");
  assert.equal(withStripe(signed.replace("v1=", "v0=")), false, "and prove nothing");
  assert.equal(withStripe(`t=1492774577,v1=${other},v1=${other}`), false);
  assert.equal(withStripe(`${signed},t=1492774578`), false, "two times");
  assert.equal(withStripe(`${signed}${`,v1=${other}`.repeat(16)}`), false, "more than are looked at");
  const standard = VECTORS["standard_webhooks"] as Vector;
  const one = standard.headers["webhook-signature"] ?? "";
  const none = `v1,${Buffer.alloc(32).toString("base64")}`;
  assert.equal(isGenuine(withHeader(standard, "webhook-signature", `${none} ${one}`)), true);
  assert.equal(isGenuine(withHeader(standard, "webhook-signature", `v1a,AAAA ${one}`)), true);
  assert.equal(isGenuine(withHeader(standard, "webhook-signature", `${none} ${none}`)), false);
});

const shown = (preset: "gitlab" | "bearer" | "basic", headers: Headers, credentials: JsonObject[]) =>
  verifyDelivery({ preset }, credentials, { headers, body: Buffer.from("{}") }, 0).isGenuine;

test("gitlab and bearer show a token, basic a login", () => {
  const known = [{ token: "old" }, { token: ["newer", "s3cret"] }];
  assert.equal(shown("gitlab", { "x-gitlab-token": "s3cret" }, known), true);
  assert.equal(shown("bearer", { authorization: "Bearer s3cret" }, known), true);
  assert.equal(shown("bearer", { authorization: "bearer old" }, known), true);
  const login = [{ username: "ann", password: "p:w" }];
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
  assert.equal(shown("basic", basic("ann:p:w"), login), true);
  for (const text of ["ann:p", "ann:", "bob:p:w", ":p:w", "ann"])
    assert.equal(shown("basic", basic(text), login), false);
});

test("another token, none, an empty one, or one in the wrong place is refused", () => {
  const known = [{ token: "s3cret" }];
  for (const headers of [
    {},
    { "x-gitlab-token": "" },
    { "x-gitlab-token": "s3cret " },
    { authorization: "Bearer s3cret" },
  ]) {
    assert.equal(shown("gitlab", headers, known), false, JSON.stringify(headers));
  }
  for (const authorization of ["s3cret", "Basic s3cret", "Bearer", "Bearer s3cre", "Bearer s3cret x"]) {
    assert.equal(shown("bearer", { authorization }, known), false, authorization);
  }
  for (const credentials of [[], [{ token: "" }], [{ secret: "s3cret" }], [{ token: null }]]) {
    assert.equal(shown("bearer", { authorization: "Bearer s3cret" }, credentials), false, JSON.stringify(credentials));
    assert.equal(shown("gitlab", { "x-gitlab-token": "" }, credentials), false);
  }
  assert.equal(shown("basic", { authorization: "Basic %%%" }, [{ username: "", password: "" }]), false);
});

test("none takes everything", () => {
  assert.equal(verifyDelivery({ preset: "none" }, [], { headers: {}, body: Buffer.alloc(0) }, 0).isGenuine, true);
});
