import { setMaxListeners } from "node:events";
import { callUntilAnswered } from "../../../src/adapters/server/retry.ts";
import { EXECUTE_ROUTES, EXECUTION_ROUTES } from "../../../src/schema/routes/executions.ts";
import { STEERING_ROUTES } from "../../../src/schema/routes/steering.ts";
import { ERROR_STATUS, FlowError } from "../../../src/schema/words/errors.ts";
import { type Answering, connect } from "../network.ts";
import { idOfPlaybook, programOf, type Simulated } from "../playbooks.ts";
import { startProcess, type World } from "../process.ts";
import type { Random } from "../random.ts";
import type { Tables } from "../tables.ts";
import { peopleOf, type TakenDecision } from "./people.ts";
import { type MadeRerun, type RerunsParts, rerunsOf } from "./reruns.ts";

/** An operator who starts executions, now and then pauses one, cancels it, or gives it too little time, and runs some again. */
export interface Operator {
  /** Executions by the idempotency key of their start. */
  readonly started: ReadonlyMap<string, string>;
  readonly interfered: ReadonlySet<string>;
  /** In the order in which they were begun. */
  readonly reruns: readonly MadeRerun[];
  /** What people have said that a server has taken. */
  readonly taken: readonly TakenDecision[];
  /** Nothing more is going to be done. */
  isDone(): boolean;
}

/** What an operator needs. */
export interface OperatorParts extends World {
  servers: readonly Answering[];
  tables: Tables;
  playbook: Simulated;
  /** Whether it may cancel. */
  interferes: boolean;
  /** Which reruns there are: by chance, each that is possible, or none. */
  reruns: Random | "each" | "none";
  broken(error: unknown): void;
}

/** Begins to start executions. It neither crashes nor gives up; its calls are as lossy as everybody's. */
export function createOperator(parts: OperatorParts): Operator {
  const { clock, random, tables, playbook, servers, broken } = parts;
  const process = startProcess(parts, {});
  const retry = { connection: connect(parts, process, servers), clock, random: random.next };
  const started = new Map<string, string>();
  const interfered = new Set<string>();
  let open = 0;

  const limits = { timeoutMs: 0, signal: new AbortController().signal };
  setMaxListeners(0, limits.signal);
  const cancel = (executionId: string) =>
    callUntilAnswered(retry, EXECUTION_ROUTES.cancel, { params: { execution_id: executionId }, body: {}, ...limits });
  const steer = (what: "pause" | "resume", executionId: string) =>
    callUntilAnswered(retry, EXECUTION_ROUTES[what], { params: { execution_id: executionId }, body: {}, ...limits });
  /** It must end as it would have: a pause changes nothing but the time. */
  const pauseForAWhile = (executionId: string) => {
    clock.after(random.between(0, 10_000), () =>
      work(async () => {
        await steer("pause", executionId);
        await clock.sleep(random.between(0, 20_000));
        // An answer that was lost is asked for again, and the network may keep the first request until after the resumption.
        do {
          await steer("resume", executionId);
          await clock.sleep(60_000);
        } while (tables.store.executions.get(executionId)?.status === "PAUSED");
      }),
    );
  };
  const disturb = (executionId: string) => {
    interfered.add(executionId);
    clock.after(random.between(0, 20_000), () => {
      if (random.chance(0.5)) return work(() => cancel(executionId));
      const row = tables.store.executions.get(executionId);
      // As if its playbook had said so at the start.
      if (row !== undefined) row.deadlineAt = clock.now();
    });
  };
  /** A person ends steps or iterations, begun or not; what has ended meanwhile is refused. */
  const override = (executionId: string) => {
    interfered.add(executionId);
    const steps = [...programOf(idOfPlaybook(playbook.path)).program.steps.keys()];
    for (let times = random.between(1, 3); times > 0; times -= 1) {
      const params = { execution_id: executionId, step: random.pick(steps) };
      const iteration = random.chance(0.5) ? { iteration: random.between(0, 6) } : {};
      const body = { action: random.pick(["skip", "complete", "fail"] as const), reason: "tried", ...iteration };
      clock.after(random.between(0, 15_000), () =>
        work(() =>
          callUntilAnswered(retry, STEERING_ROUTES.override, { params, body, ...limits }).catch((error: unknown) => {
            if (!(error instanceof FlowError && ERROR_STATUS[error.code] < 500)) throw error;
          }),
        ),
      );
    }
  };
  /** Each is sent until that is answered: it may arrive twice, and later than the others. */
  const send = (executionId: string) => {
    for (const { name, ...body } of playbook.signals) {
      const params = { execution_id: executionId, name };
      clock.after(random.between(0, 15_000), () =>
        work(() =>
          callUntilAnswered(retry, STEERING_ROUTES.signal, { params, body, ...limits }).catch((error: unknown) => {
            // A run that was disturbed may have ended, or have taken a signal that was then sent again.
            if (!(error instanceof FlowError && error.code === "already_terminal")) throw error;
          }),
        ),
      );
    }
  };
  const taken: TakenDecision[] = [];
  const people = peopleOf({ tables, random, sleep: clock.sleep, retry, limits, work: (what) => work(what) }, taken);
  /** Its people, and what else comes to it from outside. */
  const attend = (executionId: string) => {
    send(executionId);
    if (playbook.hasPeople) people(executionId);
  };
  const reruns: MadeRerun[] = [];
  const ask: RerunsParts["ask"] = (executionId, body, key) => {
    const input = { params: { execution_id: executionId }, body, ...(key !== undefined && { idempotencyKey: key }) };
    return callUntilAnswered(retry, EXECUTION_ROUTES.rerun, { ...input, ...limits });
  };
  const disturbNowAndThen = (executionId: string) => {
    if (parts.interferes && random.chance(0.1)) disturb(executionId);
    if (parts.interferes && random.chance(0.1)) override(executionId);
    if (parts.interferes && random.chance(0.15)) pauseForAWhile(executionId);
  };
  const again = rerunsOf(
    {
      store: tables.store,
      random: typeof parts.reruns === "string" ? undefined : parts.reruns,
      sleep: clock.sleep,
      ask,
      begun: (executionId) => {
        attend(executionId);
        disturbNowAndThen(executionId);
      },
    },
    reruns,
  );
  const start = async (key: string) => {
    const input = { body: { path: playbook.path, workload: {} }, idempotencyKey: key, ...limits };
    const { execution_id: executionId } = await callUntilAnswered(retry, EXECUTE_ROUTES.execute, input);
    started.set(key, executionId);
    attend(executionId);
    disturbNowAndThen(executionId);
    if (parts.reruns !== "none") work(() => again(executionId));
  };
  const work = (what: () => Promise<unknown>) => {
    open += 1;
    what().then(() => {
      open -= 1;
    }, broken);
  };

  const count = random.chance(0.6) ? 1 : random.between(2, 3);
  for (let index = 1; index <= count; index += 1) {
    const wait = random.between(0, 3_000);
    work(async () => {
      await clock.sleep(wait);
      await start(`start-${index}`);
    });
  }
  return { started, interfered, reruns, taken, isDone: () => open === 0 };
}
