import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** An address of this machine to which a browser comes back from its login (RFC 8252, section 7.3). */
export interface LoopbackRedirect {
  url: string;
  /** What the provider gave the browser. Rejects with `FlowError` UNAUTHENTICATED where it refused the login. */
  code: Promise<string>;
  close(): Promise<void>;
}

/** What a browser that comes back must bring: `state` of this very login, and the issuer where it says one (RFC 9207). */
export interface ExpectedRedirect {
  port: number;
  state: string;
  issuer: string;
}

/** Waits for one browser. Throws `FlowError` INVALID_SETTING when the port cannot be had. */
export async function startRedirect(expected: ExpectedRedirect): Promise<LoopbackRedirect> {
  let resolve = (_code: string) => {};
  let reject = (_error: FlowError) => {};
  const code = new Promise<string>((...settle) => {
    [resolve, reject] = settle;
  });
  // The caller may have stopped waiting.
  code.catch(() => {});
  const server = createServer((request, response) => {
    const outcome = outcomeOf(request, expected);
    // The browser gets its answer before the wait, and with it this server, ends.
    response.once("close", () => {
      if ("code" in outcome) resolve(outcome.code);
      else if ("refused" in outcome) reject(new FlowError("UNAUTHENTICATED", outcome.refused));
    });
    answer(response, outcome);
  });
  await new Promise<void>((listening, failed) => {
    server.once("error", failed);
    // By its number and not as `localhost`, which may be another address.
    server.listen(expected.port, "127.0.0.1", listening);
  }).catch((cause: unknown) => {
    const what = `Cannot wait for the browser at port ${expected.port}`;
    throw new FlowError("INVALID_SETTING", `${what}: ${messageOf(cause)}`, { cause });
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/callback`,
    code,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        // Browsers open connections ahead of need and keep them for minutes.
        server.closeAllConnections();
      }),
  };
}

type Outcome = { code: string } | { refused: string } | { status: 400 | 404; text: string };

function outcomeOf({ method, url = "/" }: IncomingMessage, { state, issuer }: ExpectedRedirect): Outcome {
  const { pathname, searchParams } = new URL(url, "http://127.0.0.1");
  if (method !== "GET" || pathname !== "/callback") return { status: 404, text: "There is nothing here." };
  // Any page can send a browser here; without this login's state it is not ours, and the wait continues.
  if (searchParams.get("state") !== state) return { status: 400, text: "This is not the login that flow waits for." };
  const from = searchParams.get("iss");
  if (from !== null && from !== issuer) return { status: 400, text: "This answer is of another provider." };
  const code = searchParams.get("code");
  if (code !== null && code !== "") return { code };
  const why = searchParams.get("error_description") ?? searchParams.get("error") ?? "it gave no reason";
  return { refused: `The identity provider refused the login: ${why.slice(0, 500)}` };
}

/** Plain text: nothing from the address is shown as a page. */
function answer(response: ServerResponse, outcome: Outcome): void {
  const [status, text] =
    "code" in outcome
      ? [200, "Thank you. The rest happens in the terminal; this page can be closed."]
      : "refused" in outcome
        ? [200, "The login was refused. The terminal says more; this page can be closed."]
        : [outcome.status, outcome.text];
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    connection: "close",
  });
  response.end(`${text}\n`);
}
