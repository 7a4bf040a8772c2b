/** One arrow of a playbook. */
export interface Arc {
  from: string;
  to: string;
  /** Its condition, as it is written. */
  when: string | undefined;
}

/** The parts of a playbook's step that are drawn. */
export interface GraphStep {
  name: string;
  /** Kinds of its tools. */
  kinds: readonly string[];
  isLoop: boolean;
}

/** The part of a playbook that is drawn. */
export interface Drawn {
  steps: readonly GraphStep[];
  arcs: readonly Arc[];
}

/** Trace, details and graph ask for the same document: of a thousand steps each would read it for 15 ms. */
const known = new WeakMap<object, Drawn>();

/** The steps and arrows of a document, in every form that `next` can have. What is not understood is left out. */
export function graphOf(payload: Readonly<Record<string, unknown>>): Drawn {
  const found = known.get(payload) ?? readGraph(payload);
  known.set(payload, found);
  return found;
}

function readGraph(payload: Readonly<Record<string, unknown>>): Drawn {
  const workflow = Array.isArray(payload["workflow"]) ? payload["workflow"] : [];
  const steps: GraphStep[] = [];
  const arcs: Arc[] = [];
  for (const step of workflow) {
    if (!isRecord(step) || typeof step["step"] !== "string") continue;
    const from = step["step"];
    steps.push({ name: from, kinds: kindsOf(step["tool"]), isLoop: isRecord(step["loop"]) });
    arcs.push(...arcsOf(step["next"]).map((arc) => ({ from, ...arc })));
  }
  const names = new Set(steps.map(({ name }) => name));
  return { steps, arcs: arcs.filter(({ to }) => names.has(to)) };
}

function arcsOf(next: unknown): Omit<Arc, "from">[] {
  if (typeof next === "string") return [{ to: next, when: undefined }];
  if (Array.isArray(next)) return next.flatMap(arcsOf);
  if (!isRecord(next)) return [];
  if (Array.isArray(next["arcs"])) return next["arcs"].flatMap(arcsOf);
  const when = typeof next["when"] === "string" ? next["when"] : undefined;
  if (typeof next["step"] === "string") return [{ to: next["step"], when }];
  return arcsOf(next["then"]).map(({ to }) => ({ to, when }));
}

function kindsOf(tool: unknown): string[] {
  if (Array.isArray(tool)) return [...new Set(tool.flatMap(kindsOf))];
  if (!isRecord(tool)) return [];
  if (typeof tool["kind"] === "string") return [tool["kind"]];
  return Object.values(tool).flatMap(kindsOf);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
