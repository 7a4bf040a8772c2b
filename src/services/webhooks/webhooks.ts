import { type Condition, compileCondition, compileTemplate, type Template } from "../../language/template/template.ts";
import { objectScope } from "../../language/views/scope.ts";
import { createRateLimit } from "../../platform/concurrency/rate-limit.ts";
import type { TriggerRow } from "../../repositories/triggers/triggers.ts";
import { HOOK_PER_SECOND } from "../../schema/triggers/deliveries.ts";
import { type WebhookTrigger, whyNoHookPath } from "../../schema/triggers/webhook.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { type Audit, audited } from "../access/audit.ts";
import type { Executions } from "../executions/executions.ts";
import { fireKey } from "../triggers/fire-key.ts";
import type { Fired, Triggers } from "../triggers/triggers.ts";
import { deliveryId, readableHeaders } from "./delivery-id.ts";
import { type DeliveryLog, type SeenDelivery, seeDelivery } from "./delivery-log.ts";
import type { HookSecrets } from "./hook-secrets.ts";
import { verifyDelivery } from "./verify-delivery.ts";

/** A delivery as it comes in. */
export interface HookDelivery {
  /** The address below `/hooks/`. */
  path: string;
  method: string;
  headers: Readonly<Record<string, string | undefined>>;
  query: JsonObject;
  /** The bytes of its body. Rejects with `FlowError` TOO_LARGE. */
  read(): Promise<Buffer>;
  /** What they mean. Throws `FlowError` INVALID_INPUT. */
  parse(bytes: Buffer): Json;
  /** Where it comes from, and the id of the request. */
  address?: string;
  requestId: string;
}

/** What came of a delivery. */
export interface HookOutcome {
  executionId?: string;
  status?: string;
  result?: Json;
  /** The execution has ended within the time that the trigger waits. */
  hasEnded?: boolean;
  isQueued?: boolean;
  isRepeated?: boolean;
  isSkipped?: boolean;
  reason?: string;
  /** Slack's question, to be given back. */
  challenge?: string;
}

/** Deliveries of webhooks. */
export interface Webhooks {
  /**
   * Starts the playbook of the trigger at a path, once for each delivery, and waits for the result where the trigger says so, until
   * the sender has left. Rejects with `FlowError` NOT_FOUND for a path that is unknown or disabled, RATE_LIMITED, UNAUTHENTICATED without
   * a word of what is wrong, and INVALID_INPUT where the trigger's templates fail with this delivery.
   */
  take(delivery: HookDelivery, listen: () => { signal: AbortSignal; done(): void }): Promise<HookOutcome>;
}

/** What {@link createWebhooks} needs. */
export interface WebhooksDeps {
  triggers: Pick<Triggers, "findAt" | "fire" | "scope">;
  executions: Pick<Executions, "outcome">;
  secrets: HookSecrets;
  audit: Pick<Audit, "unauthenticated">;
  log: Pick<DeliveryLog, "note">;
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds of a clock that does not jump. */
  busy(): number;
}

/** Paths that are counted and remembered, so that guesses do not fill the memory. */
const PATHS_MAX = 10_000;
/** How long a trigger is taken as it was read: one that is disabled takes deliveries for this much longer, on other servers. */
const KNOWN_MS = 1_000;
/** How long the id of a delivery counts (control, rule 42). */
const KEPT_MS = 86_400_000;
/** Times that an id is taken for another delivery. */
const DAYS_MAX = 100;

/** Takes deliveries. */
export function createWebhooks(deps: WebhooksDeps): Webhooks {
  const limit = createRateLimit({
    uses: HOOK_PER_SECOND,
    withinMs: 1_000,
    keysMax: PATHS_MAX,
    now: deps.busy,
  });
  const triggerAt = createLookUp(deps);
  return {
    async take(delivery, listen) {
      const trigger = await triggerAt(delivery.path);
      if (trigger === undefined)
        throw new FlowError("NOT_FOUND", `There is no webhook '${delivery.path.slice(0, 200)}'`);
      const seen = seeDelivery(deps.log, { triggerId: trigger.triggerId, address: delivery.address });
      if (limit(delivery.path) > 0) seen.refuse(tooMany(delivery.path));
      const section = trigger.definition.webhook as WebhookTrigger;
      const bytes = await delivery.read().catch((error: unknown) => seen.refuse(error));
      seen.size(bytes.length);
      await verify(deps, { trigger, section, delivery }, bytes, seen);
      const body = seen.parsed(() => delivery.parse(bytes));
      const challenge = section.verify.preset === "slack" ? challengeOf(body) : undefined;
      if (challenge !== undefined) {
        seen.came("answered", { reason: "Slack has asked whether the address is ours" });
        return { challenge };
      }
      const fired = await fireFor(deps, { trigger, section, delivery }, body);
      seen.came(...verdictOf(fired));
      if (fired.status === "failed") throw failed(fired);
      const outcome = outcomeOf(fired);
      if (section.respondMs === undefined || outcome.executionId === undefined) return outcome;
      const waited = { waitMs: section.respondMs, isFresh: !fired.isRepeated };
      const { signal, done } = listen();
      const ended = await deps.executions.outcome(outcome.executionId, waited, signal).finally(done);
      if (ended === undefined) return outcome;
      return { ...outcome, status: ended.status, result: ended.result, hasEnded: true };
    },
  };
}

/** A delivery, and the trigger at its path. */
interface Meant {
  trigger: TriggerRow;
  section: WebhookTrigger;
  delivery: HookDelivery;
}

/** The enabled trigger at a path, as of the last second; also that it is unknown: who guesses paths asks the database that often. */
function createLookUp({ triggers, busy }: WebhooksDeps): (path: string) => Promise<TriggerRow | undefined> {
  const known = new Map<string, { at: number; found: Promise<TriggerRow | undefined> }>();
  return async (path) => {
    if (whyNoHookPath(path) !== undefined) return undefined;
    const before = known.get(path);
    if (before !== undefined && busy() - before.at < KNOWN_MS) return await before.found;
    const found = triggers.findAt("webhook", path).then((row) => (row?.enabled === true ? row : undefined));
    known.delete(path);
    if (known.size >= PATHS_MAX) known.delete(known.keys().next().value ?? "");
    known.set(path, { at: busy(), found });
    found.catch(() => known.delete(path));
    return await found;
  };
}

/**
 * Throws the refusal of a delivery that does not prove who sent it. What is wrong with it stands in the audit log and among the trigger's
 * deliveries, and nowhere else.
 */
async function verify(
  deps: WebhooksDeps,
  { trigger, section, delivery }: Meant,
  body: Buffer,
  seen: SeenDelivery,
): Promise<void> {
  const { preset, secrets } = section.verify;
  const credentials = preset === "none" ? [] : await deps.secrets(trigger, secrets);
  const verdict = verifyDelivery(section.verify, credentials, { headers: delivery.headers, body }, deps.now());
  if (verdict.isGenuine) return;
  const caller = {
    actorKind: "anonymous",
    rule: verdict.why,
    ...defined({ address: delivery.address, requestId: delivery.requestId }),
  } as const;
  deps.audit.unauthenticated(
    audited(caller, "webhook.deliver", `trigger/${trigger.path}/${trigger.name}`, { result: "deny" }),
  );
  seen.refuse(new FlowError("UNAUTHENTICATED", "The delivery is not accepted"), verdict.why);
}

async function fireFor(deps: WebhooksDeps, { trigger, section, delivery }: Meant, body: Json): Promise<Fired> {
  const { headers, query, method } = delivery;
  const { preset, hmac } = section.verify;
  const own = hmac === undefined ? [] : [hmac.header];
  const names: JsonObject = { body, headers: readableHeaders(headers, own), query, method };
  const now = deps.now();
  const judged = judge(section, { given: deps.triggers.scope(trigger, { dueAt: now, firedAt: now, names }), now });
  const { deduplicate, keyHeader = "" } = section;
  const id =
    judged.key ?? (deduplicate === undefined ? headers[keyHeader] || deliveryId(preset, headers, body) : undefined);
  const key = id === undefined ? `request/${delivery.requestId}` : `delivery/${fireKey(id)}`;
  const about = { names, ...defined({ verdict: judged.verdict }) };
  let fired = await deps.triggers.fire(trigger, { key, ...about });
  // The same id a day later is another delivery, whichever server takes it.
  for (let days = 0; fired.isRepeated && now - fired.firedAt >= KEPT_MS && days < DAYS_MAX; days += 1) {
    fired = await deps.triggers.fire(trigger, { key: `${key}/after/${fired.fireId}`, ...about });
  }
  return fired;
}

/** What the trigger's own templates say of a delivery: its key, or why nothing starts. */
function judge(
  section: WebhookTrigger,
  { given, now }: { given: JsonObject; now: number },
): { key?: string; verdict?: { status: "failed" | "skipped"; reason: string } } {
  const scope = objectScope(given);
  const options = { now: () => now };
  try {
    const { when, deduplicate } = templatesOf(section);
    if (when?.test(scope, options) === false)
      return { verdict: { status: "skipped", reason: "Its `when` does not hold" } };
    if (deduplicate === undefined) return {};
    const key = deduplicate.render(scope, options);
    if (key === null || key === "") return { verdict: { status: "skipped", reason: "Its `deduplicate` gives no key" } };
    return { key: typeof key === "string" ? key : JSON.stringify(key) };
  } catch (error) {
    return { verdict: { status: "failed", reason: `A template of the webhook failed: ${messageOf(error)}` } };
  }
}

const compiled = new WeakMap<WebhookTrigger, { when?: Condition; deduplicate?: Template }>();

/** Compiled once for as long as the trigger is in memory. */
function templatesOf(section: WebhookTrigger): { when?: Condition; deduplicate?: Template } {
  const before = compiled.get(section);
  if (before !== undefined) return before;
  const { when, deduplicate } = section;
  const made = defined({
    when: when === undefined ? undefined : compileCondition(when),
    deduplicate: deduplicate === undefined ? undefined : compileTemplate(deduplicate),
  });
  compiled.set(section, made);
  return made;
}

/** What is noted of a delivery that came to a fire. */
function verdictOf({ status, executionId, reason, isRepeated }: Fired): Parameters<SeenDelivery["came"]> {
  const about = defined({ executionId: executionId ?? undefined, reason: reason ?? undefined });
  if (status === "failed") return ["failed", about];
  if (isRepeated) return ["repeated", about];
  return [status === "missed" ? "skipped" : status, about];
}

function outcomeOf({ status, executionId, reason, isRepeated }: Fired): HookOutcome {
  return {
    ...defined({ executionId: executionId ?? undefined, reason: reason ?? undefined }),
    ...(status === "queued" && { isQueued: true }),
    ...(status === "skipped" && { isSkipped: true }),
    ...(isRepeated && { isRepeated }),
  };
}

/** Slack asks once whether an address is ours. */
function challengeOf(body: Json): string | undefined {
  if (!isJsonObject(body) || own(body, "type") !== "url_verification") return undefined;
  const challenge = own(body, "challenge");
  return typeof challenge === "string" ? challenge : undefined;
}

function failed({ reason }: Fired): FlowError {
  return new FlowError("INVALID_INPUT", `The delivery started nothing: ${reason ?? "the trigger failed"}`);
}

function tooMany(path: string): FlowError {
  const message = `More than ${HOOK_PER_SECOND} deliveries a second came for '${path}'. Send it again in a moment`;
  return new FlowError("RATE_LIMITED", message, { detail: { retry_after_seconds: 1 } });
}
