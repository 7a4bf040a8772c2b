import type { Config } from "../../platform/config/config.ts";
import { parseDatabaseUrl } from "../../platform/config/database-address.ts";
import { idpIssuers } from "../../platform/config/identity-providers.ts";
import { callbackToken } from "../../platform/crypto/callback-token.ts";
import { readPackageFile } from "../../platform/system/package-file.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { enterAdministrators } from "../../repositories/access/auth-database-account.ts";
import type { Database } from "../../repositories/database/database.ts";
import type { Catalog } from "../../services/catalog/catalog.ts";
import { registerSystemPlaybooks, type SystemPlaybook } from "../../services/catalog/system-playbooks.ts";
import type { Credentials } from "../../services/credentials/credentials.ts";
import {
  type DatabaseAddress,
  ensureAuthCredential,
  ensureBrokerCredential,
  ensureCallbackCredential,
  type GivenAccount,
  type LoginCredential,
  storeAuthCredential,
} from "../../services/login/login-credentials.ts";

/** Playbooks of logins (interface specification, Gateway), as `playbooks/api_integration/idp/` has them. */
const PLAYBOOKS = [
  "login",
  "validate_session",
  "check_playbook_access",
  "user_management",
  "provision_auth_schema",
  "setup_admin_permissions",
];

/** Settings that {@link prepareLogins} reads. */
export type LoginConfig = Pick<
  Config,
  "adminEmails" | "brokerUrl" | "databaseUrl" | "idpDomains" | "idpName" | "idpProviders" | "serverToken"
>;

/** What {@link prepareLogins} needs. */
export interface PrepareLoginsDeps {
  config: LoginConfig;
  database: Database;
  /** Of that database. */
  databaseUrl: string;
  /** The account of logins that an embedded database has. */
  authAccount?: GivenAccount | undefined;
  credentials: Pick<Credentials, "find" | "read" | "save">;
  catalog: Pick<Catalog, "register">;
  version: string;
  logger: Logger;
}

/**
 * What logins need of a server: the system playbooks in its catalog, their credentials, the first administrators. Nothing of it
 * changes what an administrator has made theirs. In a database of your own, accounts are made only where the settings speak of
 * logins at all; and only there the log does.
 */
export async function prepareLogins(deps: PrepareLoginsDeps): Promise<void> {
  const { config, database, logger } = deps;
  await registerPlaybooks(deps);
  const speaksOfLogins = config.idpDomains.length + config.idpProviders.size + config.adminEmails.length > 0;
  if (config.databaseUrl !== undefined && !speaksOfLogins) return;
  const account = await authCredential(deps);
  const broker =
    config.brokerUrl === undefined ? undefined : await ensureBrokerCredential(deps, config.brokerUrl.reveal());
  const callback = await ensureCallbackCredential(deps, callbackToken(config.serverToken).reveal());
  if (!speaksOfLogins) return;
  warnOfAccount(account, config, logger);
  const credentials = { pg_auth: account, nats_credential: broker, gateway_callback: callback };
  if (Object.values(credentials).includes("made")) logger.info(credentials, "credentials of logins");
  const issuers = idpIssuers(config);
  const entered = await enterAdministrators(
    database,
    config.adminEmails,
    issuers.length === 1 ? issuers[0] : undefined,
  );
  if (entered.length > 0 && issuers.length > 1) {
    const remedy = "enter administrators with flow users add EMAIL admin --issuer URL instead";
    logger.warn(
      { emails: entered, issuers },
      `the first identity provider that vouches for them gets their rights; ${remedy}`,
    );
  }
  if (entered.length > 0) logger.warn({ emails: entered }, "FLOW_ADMIN_EMAILS: these are administrators from now on");
}

async function authCredential(deps: PrepareLoginsDeps): Promise<LoginCredential> {
  const address = addressOf(deps.databaseUrl);
  if (deps.config.databaseUrl !== undefined) return ensureAuthCredential(deps, address);
  return deps.authAccount === undefined ? "refused" : storeAuthCredential(deps, address, deps.authAccount);
}

async function registerPlaybooks(deps: PrepareLoginsDeps): Promise<void> {
  const playbooks = await systemPlaybooks(deps.config);
  for (const { path, outcome } of await registerSystemPlaybooks(deps, playbooks)) {
    if (outcome === "edited" || outcome === "newer") {
      const whose = outcome === "edited" ? "was edited" : "comes from a newer flow";
      deps.logger.info({ path, outcome }, `the system playbook '${path}' stays as it is: it ${whose}`);
    }
  }
}

/** The documents, below the name of the provider and with the cache of sessions where there is a broker. */
export async function systemPlaybooks(config: Pick<LoginConfig, "brokerUrl" | "idpName">): Promise<SystemPlaybook[]> {
  return Promise.all(
    PLAYBOOKS.map(async (name) => {
      const text = await readPackageFile(`playbooks/api_integration/idp/${name}.yaml`);
      const placed = text.replaceAll("api_integration/idp/", `api_integration/${config.idpName}/`);
      const content = config.brokerUrl === undefined ? placed : placed.replace(/^ {2}cache: false$/m, "  cache: true");
      return { path: `api_integration/${config.idpName}/${name}`, content };
    }),
  );
}

/** The first server of several, by TCP where that is possible; else the folder of a unix socket as a host, as the playbooks' driver takes it. */
function addressOf(databaseUrl: string): DatabaseAddress {
  const { places, database, user, sslMode } = parseDatabaseUrl(databaseUrl);
  const place = places.find((one) => "host" in one) ?? places[0] ?? { host: "localhost", port: 5_432 };
  const [, folder = "", port] = "path" in place ? (/^(.*)\/\.s\.PGSQL\.(\d+)$/.exec(place.path) ?? []) : [];
  return {
    ...("path" in place ? { host: folder, port: Number(port) } : { host: place.host, port: place.port }),
    database: database ?? user ?? "",
    ...(sslMode !== "disable" && { sslmode: sslMode }),
  };
}

function warnOfAccount(account: LoginCredential, config: LoginConfig, logger: Logger): void {
  if (account !== "refused" && account !== "foreign") return;
  const what = "No logins are possible: the credential pg_auth is missing, and";
  const hand = "Make one by hand and store it, see docs/access.md";
  const why = {
    embedded:
      "the embedded PostgreSQL is in use since before it had an account for it. Stop every flow that uses it, then start again",
    refused: `the account of FLOW_DATABASE_URL may not make one for it. ${hand}`,
    foreign: `the database server has an account of that name which is not flow's. ${hand}`,
  };
  const reason = account === "refused" && config.databaseUrl === undefined ? "embedded" : account;
  logger.error({ pg_auth: account }, `${what} ${why[reason]}`);
}
