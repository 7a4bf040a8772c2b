import { setMaxListeners } from "node:events";
import type { Config } from "../../platform/config/config.ts";
import { isLoopback } from "../../platform/http/loopback.ts";
import { createIds } from "../../platform/system/ids.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { createDoctorApp } from "../../routes/doctor/app.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { ErrorBody } from "../../schema/words/wire.ts";
import { listen } from "../http/listen.ts";
import { shortTokens } from "../http/short-tokens.ts";
import { type DoctorHome, openDoctor } from "./open-doctor.ts";

/** What a doctor that listens needs. */
export interface DoctorRoleDeps {
  config: Config;
  host: string;
  port: number;
  folder: string;
  version: string;
  logger: Logger;
  lifecycle: Lifecycle;
  /** Instead of FLOW_SERVER_URL and FLOW_SERVER_TOKEN. */
  server?: DoctorHome;
}

const SERVER_URL = "http://127.0.0.1:8082";

/**
 * The role `doctor`: its tools over HTTP and MCP. It keeps no state, and starts without a server or a database, because these
 * are what it examines. Throws `FlowError` INVALID_SETTING for an address that is not available, or beyond loopback without a
 * token, or with one that is short.
 */
export async function startDoctor(deps: DoctorRoleDeps): Promise<{ url: string }> {
  const { config, host, port, logger, lifecycle, folder, version } = deps;
  const token = config.doctorToken ?? config.serverToken;
  const loopback = isLoopback(host);
  if (token === undefined && !loopback) {
    const why = `Refused to listen on ${host} without a token: everyone who can reach the doctor could make it connect anywhere`;
    if (!config.authDisabled) {
      throw new FlowError("INVALID_SETTING", `${why}. Set FLOW_DOCTOR_TOKEN, or FLOW_AUTH_DISABLED=true`);
    }
    logger.warn({}, `FLOW_AUTH_DISABLED=true: everyone who can reach ${host} may use the doctor`);
  }
  const short = shortTokens({ [config.doctorToken === undefined ? "FLOW_SERVER_TOKEN" : "FLOW_DOCTOR_TOKEN"]: token });
  if (short !== undefined && !loopback)
    throw new FlowError("INVALID_SETTING", `Refused to listen on ${host}: ${short}`);
  const home = deps.server ?? { url: config.serverUrl ?? SERVER_URL, token: config.serverToken };
  const doctor = await openDoctor(config, home, folder);
  const stopping = new AbortController();
  // Every call listens to it. Node takes eleven for a leak.
  setMaxListeners(0, stopping.signal);
  const newRequestId = createIds(Date.now);
  const app = createDoctorApp({ doctor, logger, token, loopback, stopping: stopping.signal, version, newRequestId });
  const malformed = () => {
    const error = "The request is malformed: its address or its Host header is invalid";
    const body = { error, code: "INVALID_INPUT", request_id: newRequestId() } satisfies ErrorBody;
    return Response.json(body, { status: 400 });
  };
  const listener = await listen(
    { fetch: (request, { incoming }) => app.fetch(request, { incoming }), malformed },
    { host, port },
  );
  lifecycle.add("the HTTP server", () => listener.close());
  lifecycle.add("waiting requests", () => stopping.abort());
  return { url: listener.url };
}
