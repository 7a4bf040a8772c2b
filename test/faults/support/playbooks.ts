/** Iterations of the loop of {@link WORK}. */
export const FAN = 6;

const call = (name: string) => `{kind: http, method: POST, url: "{{ workload.effects }}/{{ execution_id }}/${name}"}`;

/** One request, a loop of requests at the same time, one request; each is an effect. */
export const WORK = `apiVersion: flow/v2
kind: Playbook
metadata: {name: work, path: work}
workload: {effects: ""}
workflow:
  - step: first
    tool: ${call("first")}
    next: {arcs: [{step: fan}]}
  - step: fan
    loop: {in: ${FAN}, iterator: i, spec: {mode: parallel, max_in_flight: 3}}
    tool: ${call("fan/{{ i }}")}
    next: {arcs: [{step: last}]}
  - step: last
    tool: ${call("last")}
    next: {arcs: [{step: end}]}
  - step: end
    tool:
      kind: noop
      result:
        first: "{{ first.data.done }}"
        fan: "{{ fan.results | map(attribute='data') | map(attribute='done') | list }}"
        last: "{{ last.data.done }}"
`;

const FAN_NAMES = Array.from({ length: FAN }, (_, index) => `fan/${index}`);

/** What {@link WORK} comes to, and which effects it has. */
export const WORK_DONE = {
  result: { first: "first", fan: FAN_NAMES, last: "last" },
  effects: ["first", ...FAN_NAMES, "last"],
};

/** Calls {@link WORK} as an execution of its own. */
export const PARENT = `apiVersion: flow/v2
kind: Playbook
metadata: {name: parent, path: parent}
workload: {effects: ""}
workflow:
  - step: before
    tool: ${call("before")}
    next: {arcs: [{step: call}]}
  - step: call
    tool: {kind: playbook, path: work, input: {effects: "{{ workload.effects }}"}}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop, result: {last: "{{ call.last }}"}}
`;

/** What {@link PARENT} comes to. */
export const PARENT_DONE = { result: { last: "last" }, effects: ["before"] };

/** Two steps that do nothing. */
export const PAIR = `apiVersion: flow/v2
kind: Playbook
metadata: {name: pair, path: pair}
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
`;

/** What {@link PAIR} comes to with a manual worker. */
export const PAIR_DONE = { result: { step: "end" } };
