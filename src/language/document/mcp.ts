import { McpDocument, McpMetadata, McpSpec } from "../../schema/documents/mcp-document.ts";
import { checkShape } from "./shape.ts";
import { field, isMap, type Place, textOf } from "./source/place.ts";
import { checkKeys, legacy, type Reading } from "./source/reading.ts";

const API_VERSION = /^[^\s/]\S*\/v2$/;

/** Checks an MCP resource; every problem is reported. */
export function readMcp(reading: Reading, root: Place): void {
  const { report } = reading;
  checkShape(root, McpDocument, report);
  checkKeys(reading, root, McpDocument);
  const metadata = field(root, "metadata");
  checkKeys(reading, metadata, McpMetadata);
  const name = field(metadata, "name");
  if (textOf(name)?.trim() === "") report("missing-key", name, "`metadata.name` is empty", "give the resource a name");
  const spec = field(root, "spec");
  checkKeys(reading, spec, McpSpec);
  checkApiVersion(reading, field(root, "apiVersion"));
  const older = field(spec, "url");
  if (older !== undefined) legacy(reading, older, "`url` of an MCP resource", "`endpoint: …`");
  const endpoint = field(spec, "endpoint") ?? older;
  if (isMap(spec) && endpoint === undefined) {
    report("missing-key", spec, "`spec` has no `endpoint`", "add `endpoint: …`");
  }
  checkEndpoint(reading, endpoint);
  checkTimeout(reading, field(spec, "timeout_seconds"));
}

function checkApiVersion(reading: Reading, place: Place | undefined): void {
  const written = textOf(place);
  if (written === undefined || API_VERSION.test(written)) return;
  const hint = "write `<vendor>/v2`";
  reading.report("wrong-api-version", place, `apiVersion \`${written}\` is not supported`, hint);
}

function checkEndpoint(reading: Reading, place: Place | undefined): void {
  const written = textOf(place);
  if (written === undefined || written.includes("{{")) return;
  const protocol = URL.canParse(written) ? new URL(written).protocol : "";
  if (protocol === "http:" || protocol === "https:") return;
  reading.report(
    "wrong-value",
    place,
    `\`${place?.key ?? ""}\` must be an http or https address`,
    "e.g. https://host:8080/mcp",
  );
}

function checkTimeout(reading: Reading, place: Place | undefined): void {
  if (typeof place?.value !== "number" || place.value > 0) return;
  reading.report("wrong-value", place, "`timeout_seconds` must be more than 0");
}
