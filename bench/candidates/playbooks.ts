import type { Work } from "./candidate.ts";

/** The playbook of a work and what is given to it: one playbook for a kind and its number of steps. */
export function playbookOf(work: Work): { path: string; text: string; workload: Record<string, number> } {
  switch (work.kind) {
    case "chain": {
      const path = `bench/chain-${work.steps}`;
      return { path, text: document(path, chain(work.steps, "{kind: noop}")), workload: {} };
    }
    case "payload": {
      const path = `bench/payload-${work.steps}`;
      return { path, text: document(path, chain(work.steps, PAYLOAD)), workload: { bytes: work.bytes } };
    }
    case "fan":
      return { path: "bench/fan", text: document("bench/fan", FAN), workload: { items: work.items } };
  }
}

const PAYLOAD = `{kind: python, args: {bytes: "{{ workload.bytes }}"}, code: "import os\\nresult = {'text': os.urandom(bytes // 2).hex()}"}`;

const FAN = `
  - step: start
    loop: {in: "{{ workload.items }}", iterator: i, spec: {mode: parallel, max_in_flight: 1000}}
    tool: {kind: noop}
    next: {arcs: [{step: end}]}
  - {step: end, tool: {kind: noop}}`;

function chain(steps: number, tool: string): string {
  const names = Array.from({ length: steps }, (_, index) => (index === 0 ? "start" : `s${index}`));
  return names
    .map((name, index) => {
      const next = index + 1 < steps ? `, next: {arcs: [{step: s${index + 1}}]}` : "";
      return `\n  - {step: ${name}, tool: ${tool}${next}}`;
    })
    .join("");
}

function document(path: string, workflow: string): string {
  const name = path.replace("/", "-");
  return `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: ${name}, path: ${path}}\nworkflow:${workflow}\n`;
}
