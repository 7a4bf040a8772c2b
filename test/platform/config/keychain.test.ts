import assert from "node:assert/strict";
import { test } from "node:test";
import { describeConfig, loadConfig } from "../../../src/platform/config/config.ts";

test("requests for secrets have thirty seconds and public addresses unless settings say otherwise", () => {
  const { keychainRequestMs, googleUrl, metadataUrl, adcAccessToken } = loadConfig({});
  assert.deepEqual(
    [keychainRequestMs, googleUrl, metadataUrl, adcAccessToken],
    [30_000, undefined, undefined, undefined],
  );
});

test("addresses lose the slash at their end, and a token is not shown", () => {
  const environment = {
    FLOW_KEYCHAIN_REQUEST_SECONDS: "2.5",
    FLOW_SECRETS_CLOUD_B_URL: "http://127.0.0.1:4566/",
    FLOW_METADATA_URL: "http://10.0.0.1/proxy/",
    FLOW_ADC_ACCESS_TOKEN: "ya29.canary",
  };
  const config = loadConfig(environment);
  assert.deepEqual([config.keychainRequestMs, config.awsUrl], [2_500, "http://127.0.0.1:4566"]);
  assert.equal(config.metadataUrl, "http://10.0.0.1/proxy");
  assert.equal(config.adcAccessToken?.reveal(), "ya29.canary");
  assert.doesNotMatch(JSON.stringify([config, describeConfig(environment)]).replace(/"environment":.*/, ""), /canary/);
});

test("hosts that get the machine's own token are Google's APIs, those that are named, or all", () => {
  const hosts = (text?: string) => loadConfig(text === undefined ? {} : { FLOW_MCP_TOKEN_HOSTS: text }).mcpTokenHosts;
  assert.deepEqual(hosts(), ["*.googleapis.com"]);
  assert.deepEqual(hosts("MCP.example.com, *.example.org,"), ["mcp.example.com", "*.example.org"]);
  assert.equal(hosts("all"), "all");
});

for (const [name, text] of [
  ["FLOW_SECRETS_CLOUD_A_URL", "secretmanager.example.com"],
  ["FLOW_SECRETS_CLOUD_C_URL", "ftp://vault"],
  ["FLOW_SECRETS_CLOUD_C_LOGIN_URL", "https://user:canary@login"],
  ["FLOW_METADATA_URL", "http://h/?token=canary"],
  ["FLOW_ADC_ACCESS_TOKEN", "ca nary"],
  ["FLOW_KEYCHAIN_REQUEST_SECONDS", "soon"],
  ["FLOW_MCP_TOKEN_HOSTS", "https://mcp.example.com"],
  ["FLOW_MCP_TOKEN_HOSTS", "*"],
] as const) {
  test(`${name} is refused when it cannot be used, without its secret`, () => {
    assert.throws(
      () => loadConfig({ [name]: text }),
      (error: Error) => {
        assert.match(error.message, new RegExp(`^${name} must be`));
        assert.doesNotMatch(error.message, /canary|ca nary/);
        return true;
      },
    );
  });
}
