import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { DuckDBInstance } from "@duckdb/node-api";
import type { Locator, Page } from "playwright-core";
import { startGui } from "../support/page/gui.ts";
import { accessibility, assertFits, LOOKS, setLook } from "../support/page/looks.ts";

/* The files of an execution in a real browser: each is shown as what it is, some rows at a time, and nothing in one does anything. */

const gui = await startGui();
after(() => gui.close());
const { serving, post, opened } = gui;
const start = async (path: string) =>
  String((await post("/api/execute", { path: `page/${path}`, wait_ms: 30_000 }))["execution_id"]);

await post("/api/catalog/register", {
  content:
    "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: empty, path: page/empty }\nworkflow:\n  - { step: one, tool: { kind: noop } }\n",
});
const empty = await start("empty");

/** Waits until there are so many of them. */
async function exactly(locator: Locator, count: number): Promise<void> {
  await locator.nth(count - 1).waitFor({ state: "attached" });
  await locator.nth(count).waitFor({ state: "detached" });
}

/** What colour an element has: in the page, of which this program knows no types. */
const COLOR = new Function("element", "return getComputedStyle(element).color") as (element: unknown) => string;

/** An execution whose only task is this code. */
async function run(name: string, code: string): Promise<string> {
  const lines = code.split("\n").map((line) => `        ${line}\n`);
  const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: ${name}, path: page/${name} }
workflow:
  - step: write
    tool:
      kind: python
      code: |
        import os
        folder = os.environ["FLOW_ARTIFACTS"]
${lines.join("")}`;
  await post("/api/catalog/register", { content });
  return await start(name);
}

/** The line of a file, shown. */
async function shown(page: Page, name: string): Promise<Locator> {
  const file = page.getByRole("region", { name: "Files" }).getByRole("listitem").filter({ hasText: name });
  await file.getByRole("button", { name: "Show", exact: true }).click();
  return file;
}

test("files of an execution are listed, shown by what they are, and downloaded; markup in them is text", async () => {
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4zwAE/xkgFAAb8gP91pbyKwAAAABJRU5ErkJggg==";
  const put = (step: string, rest: string, next: string) =>
    `  - step: ${step}\n    tool: { kind: artifact, action: put, ${rest} }\n    next: { arcs: [{ step: ${next} }] }\n`;
  const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: files, path: page/files }
workflow:
${put("dot", `file: dot.png, content_b64: "${png}"`, "table")}${put(
  "table",
  `file: orders.csv, content: "order,note\\nA-1,\\"two, \\"\\"quoted\\"\\"\\"\\nA-2,<b>x</b>\\n"`,
  "markup",
)}${put("markup", `file: "page.xml", content: "<script>alert(1)</script>"`, "none")}  - step: none
    tool: { kind: artifact, action: put, file: raw.bin, content_b64: "AAEC" }
`;
  await post("/api/catalog/register", { content });
  const id = await start("files");
  const page = await opened(`/executions/${id}?tab=files`);
  const files = page.getByRole("region", { name: "Files" });
  await exactly(files.getByRole("listitem"), 4);
  const file = (name: string) => files.getByRole("listitem").filter({ hasText: name });
  await file("dot.png").getByText("image/png · 73 bytes").waitFor();
  await file("dot.png").getByRole("button", { name: "Show" }).click();
  const picture = file("dot.png").getByRole("img", { name: "dot.png" });
  await picture.waitFor();
  assert.deepEqual([await picture.getAttribute("width"), await picture.getAttribute("height")], ["2", "2"]);
  await file("orders.csv").getByRole("button", { name: "Show" }).click();
  await file("orders.csv").getByText("A-2").waitFor();
  assert.deepEqual(await file("orders.csv").locator("td").allTextContents(), [
    ...["A-1", 'two, "quoted"', "A-2", "<b>x</b>"],
  ]);
  await file("page.xml").getByRole("button", { name: "Show" }).click();
  await file("page.xml").getByText("<script>alert(1)</script>").waitFor();
  assert.equal(await file("raw.bin").getByRole("button", { name: "Show" }).count(), 0);
  assert.equal(await file("raw.bin").getByRole("link", { name: "Download" }).getAttribute("download"), "raw.bin");
  assert.deepEqual(await accessibility(page), []);
  await page.close();
  const none = await opened(`/executions/${empty}?tab=files`);
  await none.getByText("No task has stored a file.").waitFor();
  await none.close();
});

test("a CSV file is read and shown some rows at a time, to its end and back", async () => {
  const id = await run(
    "table",
    `open(folder + "/long.csv", "w").write("n,text\\n" + "".join(f"{n},{'x' * 1000}\\n" for n in range(250)))`,
  );
  const page = await opened(`/executions/${id}?tab=files`);
  const ranges: string[] = [];
  page.on("request", (request) => ranges.push(request.headers()["range"] ?? ""));
  const file = await shown(page, "long.csv");
  const first = () => file.locator("tbody tr").first().locator("td").first();
  await file.getByText("65 rows up to").waitFor();
  assert.equal(await first().textContent(), "0");
  const numbers = new Set<string>();
  for (;;) {
    for (const row of await file.locator("tbody tr td:first-child").allTextContents()) numbers.add(row);
    const next = file.getByRole("button", { name: "Next rows" });
    if (await next.isDisabled()) break;
    const before = await first().textContent();
    await next.click();
    await file
      .locator("tbody tr td:first-child", { hasText: String(Math.max(...[...numbers].map(Number)) + 1) })
      .first()
      .waitFor();
    assert.notEqual(await first().textContent(), before);
  }
  assert.equal(numbers.size, 250);
  assert.equal(await file.locator("th").first().textContent(), "n");
  assert.ok(ranges.filter((range) => range !== "").every((range) => /^bytes=\d+-\d+$/.test(range)));
  await file.getByRole("button", { name: "Previous rows" }).click();
  assert.deepEqual(await accessibility(page), []);
  await page.close();
});

test("a Parquet file is a table, of which its rows are read by range; another file of that name says what is wrong", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "flow-parquet-"));
  t.after(() => rm(folder, { recursive: true }));
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  await connection.run(
    `copy (select range as n, 'row ' || range as text, [range, 9007199254740993] as numbers, timestamp '2026-01-30 12:00:00' as at, null::int as nothing
     from range(2500)) to '${folder}/rows.parquet' (format parquet, row_group_size 2048)`,
  );
  connection.closeSync();
  instance.closeSync();
  const base64 = (await readFile(`${folder}/rows.parquet`)).toString("base64");
  const id = await run(
    "parquet",
    `import base64\nopen(folder + "/rows.parquet", "wb").write(base64.b64decode("${base64}"))\nopen(folder + "/none.parquet", "w").write("no parquet at all")`,
  );
  const page = await opened(`/executions/${id}?tab=files`);
  const file = await shown(page, "rows.parquet");
  await file.getByText("rows 1 to 100 of 2,500").waitFor();
  assert.deepEqual(await file.locator("th").allTextContents(), ["n", "text", "numbers", "at", "nothing"]);
  assert.deepEqual(await file.locator("tbody tr").nth(7).locator("td").allTextContents(), [
    ...["7", "row 7", '[7,"9007199254740993"]', "2026-01-30T12:00:00.000Z", ""],
  ]);
  await file.getByRole("button", { name: "Next rows" }).click();
  await file.getByText("rows 101 to 200 of 2,500").waitFor();
  await file.getByText("row 199", { exact: true }).waitFor();
  assert.deepEqual(await accessibility(page), []);
  const none = await shown(page, "none.parquet");
  await none.getByRole("alert").waitFor();
  await page.close();
});

test("a page is shown with its own style in a frame in which nothing runs, and which nothing leaves", async () => {
  const reached: string[] = [];
  const web = createServer((request, response) => {
    reached.push(request.url ?? "");
    response.end("reached");
  }).listen(0, "127.0.0.1");
  await once(web, "listening");
  const away = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  const attacks = [
    `<meta http-equiv="refresh" content="0;url=${away}/refresh">`,
    `<script>document.title = "run"; top.document.title = "run"; fetch("${away}/script")</script>`,
    `<img src="${away}/image" onerror="fetch('${away}/onerror')"><img src="x" onerror="parent.postMessage('run', '*')">`,
    `<link rel="stylesheet" href="${away}/style"><link rel="prefetch" href="${away}/prefetch"><style>@import "${away}/import"; h1 { color: rgb(1, 2, 3); background: url(${away}/url) }</style>`,
    `<iframe src="${away}/frame"></iframe><object data="${away}/object"></object><embed src="${away}/embed"><video src="${away}/video" autoplay></video>`,
    `<form action="${away}/form" method="post"><button id="send">Send</button></form>`,
    `<a id="top" target="_top" href="${away}/top">To the top</a> <a id="own" href="${away}/own">Here</a> <a id="js" href="javascript:parent.location='${away}/js'">Script</a>`,
    `<a id="page" target="_parent" href="/catalog">The page</a><a id="tab" target="_blank" href="${away}/tab">A tab</a><base href="${away}/">`,
  ];
  const id = await run(
    "report",
    `open(folder + "/report.html", "w").write("""<h1>Report ü</h1>${attacks.join("\n        ")}""")`,
  );
  const page = await opened(`/executions/${id}?tab=files`);
  // The browser says what it has refused.
  page.removeAllListeners("console");
  const file = await shown(page, "report.html");
  const frame = file.frameLocator("iframe");
  await frame.getByRole("heading", { name: "Report" }).waitFor();
  assert.equal(await frame.getByRole("heading").evaluate(COLOR), "rgb(1, 2, 3)");
  assert.equal(await file.locator("iframe").getAttribute("sandbox"), "");
  const address = page.url();
  for (const link of ["send", "top", "own", "js", "page", "tab"]) {
    await frame
      .locator(`#${link}`)
      .click({ timeout: 2_000 })
      .catch(() => undefined);
    if (link === "own") {
      // A refused address leaves an error in the frame. It is opened again for the other links.
      await file.getByRole("button", { name: "Source" }).click();
      await file.getByRole("button", { name: "Page", exact: true }).click();
      await frame.getByRole("heading", { name: "Report" }).waitFor();
    }
  }
  assert.equal(page.url(), address);
  assert.notEqual(await page.title(), "run");
  assert.deepEqual([reached, page.context().pages().length], [[], 1]);
  await file.getByRole("button", { name: "Source" }).click();
  await file.getByText("<script>document.title").waitFor();
  web.close();
  await page.close();
});

test("the address of a page is no page of the service: by itself it is as closed as in its frame", async () => {
  const id = await run(
    "alone",
    `open(folder + "/a.html", "w").write("<script>document.title = 'run'</script><p>alone")\nopen(folder + "/a.txt", "w").write("x")`,
  );
  const { artifacts } = (await (await fetch(`${serving.url}/api/executions/${id}/artifacts`)).json()) as {
    artifacts: { name: string; ref: string }[];
  };
  const addressOf = (name: string) =>
    `${serving.url}/api/results/resolve?frame=true&ref=${encodeURIComponent(artifacts.find((file) => file.name === name)?.ref ?? "")}`;
  const { status, headers } = await fetch(addressOf("a.html"));
  assert.equal(status, 200);
  assert.equal(
    headers.get("content-security-policy"),
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
  );
  assert.deepEqual([headers.get("content-disposition"), headers.get("x-content-type-options")], ["inline", "nosniff"]);
  assert.equal((await fetch(addressOf("a.txt"))).status, 422);
  assert.equal((await fetch(addressOf("a.html").replace("frame=true", "frame=yes"))).status, 422);
  const page = await opened("/");
  page.removeAllListeners("console");
  await page.goto(addressOf("a.html"));
  await page.getByText("alone").waitFor();
  assert.equal(await page.title(), "");
  assert.equal(await page.evaluate("origin"), "null");
  await page.goto(serving.url);
  await page.close();
});

test("every preview is shown light, dark and narrow, without serious accessibility problems", async () => {
  const id = await run(
    "looks",
    `open(folder + "/a.csv", "w").write("region,amount,a long heading of a column\\n" + "north,1,a long text that takes its room\\n" * 30)\nopen(folder + "/a.html", "w").write("<h1>Report</h1>")\nopen(folder + "/a.json", "w").write('{"a": [1, 2]}')\nopen(folder + "/a.txt", "w").write("a text\\n" * 40)`,
  );
  const page = await opened(`/executions/${id}?tab=files`);
  for (const name of ["a.csv", "a.html", "a.json", "a.txt"]) await shown(page, name);
  await page.frameLocator("iframe").getByText("Report").waitFor();
  await page.getByText("30 rows", { exact: true }).waitFor();
  for (const [at, look] of LOOKS.entries()) {
    await setLook(page, look);
    await assertFits(page);
    assert.deepEqual(await accessibility(page), []);
    const folder = process.env["FLOW_SCREENSHOTS"];
    if (folder !== undefined) await page.screenshot({ path: `${folder}/files-${at}.png`, fullPage: true });
  }
  await page.close();
});
