import { join } from "node:path";
import { after, type TestContext } from "node:test";
import { listen } from "../../src/roles/http/listen.ts";
import { type Api, openApi } from "../support/service/api.ts";
import { type CliEnd, folderWith } from "../support/service/cli-process.ts";
import { command } from "./in-process.ts";

/** An API that listens, and commands that the operator runs against it. */
export interface OperatedApi {
  api: Api;
  url: string;
  /** Runs commands in a folder of the test's own, with settings of its own. */
  commands(t: TestContext): Promise<(...args: string[]) => Promise<CliEnd>>;
}

/** Starts one for a test file, with these settings. Await it at the top: it is gone when the file's tests are over. */
export async function openOperatedApi(settings: Readonly<Record<string, string>> = {}): Promise<OperatedApi> {
  const api = await openApi(settings);
  const server = await listen(
    { fetch: (request) => api.open.fetch(request), malformed: () => new Response(null, { status: 400 }) },
    { host: "127.0.0.1", port: 0 },
  );
  after(() => server.close());
  return {
    api,
    url: server.url,
    async commands(t) {
      const folder = await folderWith(t, {});
      const environment = { HOME: folder, XDG_CONFIG_HOME: join(folder, "settings"), FLOW_SERVER_URL: server.url };
      return async (...args) => await command(folder, args, environment);
    },
  };
}
