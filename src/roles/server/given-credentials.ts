import { listGivenCredentials } from "../../adapters/given-credentials.ts";
import type { Config } from "../../platform/config/config.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { readCredentialBody } from "../../schema/api/credentials.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { SYSTEM } from "../../services/access/audit.ts";
import {
  type CredentialContent,
  type Credentials,
  checkCredentialContent,
} from "../../services/credentials/credentials.ts";

type GivenSettings = Pick<Config, "credentialsFile" | "environment">;

/**
 * Registers the credentials of `FLOW_CREDENTIALS_FILE` and of `FLOW_CREDENTIAL_<NAME>` that are absent; what is there already
 * stays as it is, even if it was changed since. Throws `FlowError` INVALID_SETTING with every credential that cannot be one, and
 * registers none then; FILE_UNREADABLE.
 */
export async function registerGivenCredentials(
  config: GivenSettings,
  credentials: Pick<Credentials, "addAbsent" | "find">,
  logger: Logger,
): Promise<void> {
  const { contents, problems } = await readGivenCredentials(config);
  if (problems.length > 0) {
    throw new FlowError("INVALID_SETTING", `Credentials cannot be registered:\n${problems.join("\n")}`);
  }
  const registered: string[] = [];
  for (const content of contents) if (await credentials.addAbsent(content, SYSTEM)) registered.push(content.name);
  if (contents.length === 0) return;
  const kept = contents.length - registered.length;
  logger.info({ registered, kept }, "credentials of the settings: those that were absent are registered");
  const found = await Promise.all(registered.map((name) => credentials.find(name)));
  const unusable = found.filter(({ playbooks }) => playbooks.length === 0).map(({ name }) => name);
  if (unusable.length === 0) return;
  const remedy = 'add {"meta": {"playbooks": ["PATH/**"]}} to each, or run: flow credentials paths NAME PATTERN';
  logger.warn({ credentials: unusable }, `no playbook may use these credentials yet: ${remedy}`);
}

/** The credentials of the settings, and what is wrong with those that cannot be one. Throws `FlowError` FILE_UNREADABLE. */
export async function readGivenCredentials({
  credentialsFile,
  environment,
}: GivenSettings): Promise<{ contents: CredentialContent[]; problems: string[] }> {
  const contents: CredentialContent[] = [];
  const problems: string[] = [];
  for (const { place, body } of await listGivenCredentials(credentialsFile, environment)) {
    try {
      const content = readCredentialBody(body);
      checkCredentialContent(content);
      contents.push(content);
    } catch (error) {
      problems.push(`${place}: ${messageOf(error)}`);
    }
  }
  return { contents, problems };
}
