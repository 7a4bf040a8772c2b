import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** An address of this machine to which a browser comes back from its login (RFC 8252, section 7.3). */
export interface LoopbackRedirect {
  url: string;
  /** The address, with its code, to which the browser came back. Rejects with `FlowError` UNAUTHENTICATED for a refused login. */
  answer: Promise<URL>;
  close(): Promise<void>;
}

/** What a browser that comes back must bring: `state` of this very login, and the issuer where the provider names it (RFC 9207). */
export interface ExpectedRedirect {
  port: number;
  state: string;
  provider: { issuer: string; namesIssuer: boolean };
}

/** Waits for one browser. Throws `FlowError` INVALID_SETTING when the port cannot be had. */
export async function startRedirect(expected: ExpectedRedirect): Promise<LoopbackRedirect> {
  let resolve = (_answer: URL) => {};
  let reject = (_error: FlowError) => {};
  const came = new Promise<URL>((...settle) => {
    [resolve, reject] = settle;
  });
  // The caller may have stopped waiting.
  came.catch(() => {});
  const server = createServer((request, response) => {
    const outcome = outcomeOf(request, expected, (server.address() as AddressInfo).port);
    // The browser gets its answer before the wait, and with it this server, ends.
    response.once("close", () => {
      if ("answer" in outcome) resolve(outcome.answer);
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
    answer: came,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        // Browsers open connections ahead of need and keep them for minutes.
        server.closeAllConnections();
      }),
  };
}

type Outcome = { answer: URL } | { refused: string } | { status: 400 | 404; text: string };

function outcomeOf(
  { method, url = "/" }: IncomingMessage,
  { state, provider }: ExpectedRedirect,
  port: number,
): Outcome {
  const { pathname, search, searchParams } = new URL(url, "http://127.0.0.1");
  if (method !== "GET" || pathname !== "/callback") return { status: 404, text: "Not found." };
  // Any page can send a browser here; without this login's state it is not ours, and the wait continues.
  if (searchParams.get("state") !== state) return { status: 400, text: "This is not the login that flow waits for." };
  const from = searchParams.get("iss");
  if (from === null ? provider.namesIssuer : from !== provider.issuer)
    return { status: 400, text: "This answer is of another provider." };
  const code = searchParams.get("code");
  if (code !== null && code !== "") return { answer: new URL(`http://127.0.0.1:${port}${pathname}${search}`) };
  const why = searchParams.get("error_description") ?? searchParams.get("error") ?? "it gave no reason";
  return { refused: `The identity provider refused the login: ${why.slice(0, 500)}` };
}

/** Plain text: nothing from the address is shown as a page. */
function answer(response: ServerResponse, outcome: Outcome): void {
  const [status, text] =
    "answer" in outcome
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
