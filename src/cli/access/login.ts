import * as v from "valibot";
import { parsePort, parseServerUrl } from "../../platform/config/address.ts";
import { type Config, loadConfig } from "../../platform/config/config.ts";
import { GATEWAY_ROUTES } from "../../schema/routes/gateway.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { callServer } from "../server/client.ts";
import { isToken, writeContexts } from "../server/contexts.ts";
import { cleanText, jsonText } from "../terminal/text.ts";
import { readTextOption, warnOfArgument } from "../terminal/text-file.ts";
import { environmentOverride, type LoginTarget, loginTarget } from "./login-context.ts";
import { logInAtProvider } from "./provider-login.ts";

/** A login starts a playbook, which may wait for a worker. */
const LOGIN_MS = 60_000;

/**
 * `flow login`: exchanges an identity provider's ID token for a session at a gateway, and keeps the session in a context. The
 * session is never printed.
 */
export async function logIn(input: CliInput): Promise<number> {
  const { options, io } = input;
  const config = loadConfig(io.environment);
  const login = await loginTarget(input);
  const { token, domain } = await obtainIdToken(input, config, login);
  const body = { idp_token: token, idp_domain: domain };
  const limits = { signal: io.signal, timeoutMs: LOGIN_MS };
  const answer = await callServer(login.target, GATEWAY_ROUTES.login, { body, ...limits });
  const { user } = answer;
  const expiresAt = inUtc(answer.expires_at);
  if (!isToken(answer.session_token)) throw new FlowError("SERVER_UNREACHABLE", NO_SESSION);
  const { name, contexts, context } = login;
  const session = { token: answer.session_token, email: user.email, expiresAt };
  const kept = { ...contexts.contexts, [name]: { gateway: context.gateway, domain, session } };
  await writeContexts(io, { current: name, contexts: kept });
  const override = environmentOverride(config);
  if (override !== undefined) io.stderr.write(`warning: ${override}\n`);
  if (options["json"] === true) {
    io.stdout.write(`${jsonText({ gateway: context.gateway, context: name, user, expires_at: expiresAt })}\n`);
    return EXIT.ok;
  }
  const userText = `${user.display_name} <${user.email}>`;
  const roles = user.roles.length === 0 ? "no role yet: an administrator grants one" : user.roles.join(", ");
  io.stdout.write(`${cleanText(`Logged in at ${context.gateway} as ${userText} (${roles}) until ${expiresAt}`)}\n`);
  io.stderr.write(`Commands now call '${name}'.\n`);
  return EXIT.ok;
}

const NO_SESSION = "The gateway's answer is not a session. Is it a flow gateway of this version?";

/** The gateway writes this one time without a zone (interface specification, Gateway); it is UTC. */
function inUtc(text: string): string {
  const at = new Date(/(?:Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text.replace(" ", "T")}Z`);
  if (Number.isNaN(at.getTime())) throw new FlowError("SERVER_UNREACHABLE", NO_SESSION);
  return at.toISOString();
}

interface IdTokenSource {
  token: string;
  domain: string;
}

/** From a file or a pipe, from the command line, or from the provider itself, as the options say. */
async function obtainIdToken(input: CliInput, config: Config, { context }: LoginTarget): Promise<IdTokenSource> {
  const { options, io } = input;
  const given = textOption(options, "id-token");
  const file = textOption(options, "id-token-file");
  const knownDomain = textOption(options, "domain") ?? context.domain;
  if (given !== undefined && file !== undefined) {
    throw new FlowError("USAGE", "--id-token and --id-token-file were both given; give only one");
  }
  if (given !== undefined) warnOfArgument(io, "--id-token", "--id-token-file FILE reads a file, or a pipe (-)");
  if (given !== undefined || file !== undefined) {
    const what = given === undefined ? "--id-token-file" : "--id-token";
    const token = given ?? (await readTextOption(file ?? "", what, io)).trim();
    // A new token may come from another provider than the last one: what it says itself comes first.
    const domain = textOption(options, "domain") ?? issuerHost(token, what);
    return { token, domain };
  }
  const clientId = config.idpClientId;
  if (clientId === undefined) throw new FlowError("USAGE", HOW_TO_LOG_IN);
  const issuer = textOption(options, "issuer") ?? (knownDomain === undefined ? undefined : `https://${knownDomain}`);
  if (issuer === undefined) {
    throw new FlowError(
      "USAGE",
      "No identity provider is selected: --domain NAME names its domain, as the gateway allows it",
    );
  }
  const port = textOption(options, "port");
  const token = await logInAtProvider(
    { issuer: parseServerUrl("--issuer", issuer), clientId, port: port === undefined ? 0 : parsePort("--port", port) },
    io,
  );
  return { token, domain: knownDomain ?? new URL(issuer).host };
}

const HOW_TO_LOG_IN = `'flow login' needs an ID token of your identity provider:
  --id-token-file FILE      from a file; - reads a pipe
  FLOW_IDP_CLIENT_ID=…      or from the provider itself, in a browser: the id under which flow is registered there`;

const Claims = v.object({ iss: v.pipe(v.string(), v.url()) });

/**
 * Host (and port) of an ID token's issuer: the domain in a gateway's settings by default. Verifies nothing: the gateway does that.
 * `what` is the token's source, for the error. Throws `FlowError` INVALID_INPUT for any other text, which the message does not
 * quote.
 */
function issuerHost(token: string, what: string): string {
  const [, payload, ...rest] = token.split(".");
  const claims = rest.length === 1 ? v.safeParse(Claims, parse(payload ?? "")) : undefined;
  if (claims?.success === true) return new URL(claims.output.iss).host;
  const hint = "an ID token has three parts between dots, and names its issuer";
  throw new FlowError("INVALID_INPUT", `${what} holds no ID token: ${hint}. An access token is not an ID token`);
}

function parse(payload: string): unknown {
  try {
    return JSON.parse(Buffer.from(payload, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
}
