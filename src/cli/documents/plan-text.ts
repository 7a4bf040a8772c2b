import type { Rendered } from "../../language/template/render-known.ts";
import type {
  Plan,
  PlannedArc,
  PlannedCondition,
  PlannedLoop,
  PlannedStep,
  PlannedTask,
} from "../../planning/planned.ts";
import { isJsonObject, type Json, type JsonObject } from "../../schema/words/json.ts";
import type { Style } from "../terminal/style.ts";
import { cleanText, formatDuration, padText, plural } from "../terminal/text.ts";

/** Longest text of a value; code and statements are cut, `--json` has them whole. */
const VALUE_CHARACTERS_MAX = 160;
/** Steps that are named where something is used or waited for; `--json` has all. */
const NAMES_MAX = 8;

/** A plan for people: inputs, steps in order, what is not reached, what is needed. */
export function planText(plan: Plan, style: Style): string {
  const reached = plan.steps.filter((step) => step.reached === "yes");
  const others = plan.steps.filter((step) => step.reached !== "yes");
  const lines = [`${style.strong(clean(plan.name))}  ${style.dim(clean(plan.file))}`];
  if (isJsonObject(plan.workload.value) && Object.keys(plan.workload.value).length > 0) {
    lines.push("", style.strong("inputs"), ...indent(fieldLines(plan.workload, style)));
  }
  if (plan.timeout_ms !== undefined) lines.push("", `time-out  ${durationText(plan.timeout_ms)}`);
  if (plan.labels !== undefined) lines.push("", style.strong("labels"), ...indent(fieldLines(plan.labels, style)));
  for (const [index, step] of reached.entries()) lines.push("", ...stepLines(step, index + 1, plan, style));
  if (others.length > 0)
    lines.push("", style.strong("not reached"), ...indent(others.map((step) => skippedLine(step, style))));
  lines.push(...needLines(plan, style));
  return `${lines.join("\n")}\n`;
}

function stepLines(step: PlannedStep, number: number, plan: Plan, style: Style): string[] {
  const [only, second] = step.tasks;
  const single = only !== undefined && second === undefined ? only : undefined;
  const kind = single === undefined ? plural(step.tasks.length, "task") : clean(single.kind);
  const isSkipped = step.guard?.value === false;
  const head = `${style.strong(`${number}. ${clean(step.name)}`)}  ${style.busy(kind)}`;
  const roles = [step.name === plan.entry_step ? "entry" : "", step.name === plan.final_step ? "final step" : ""];
  const notes = [...roles, step.after.length > 1 ? `waits for ${nameList(step.after)}` : ""].filter(
    (note) => note !== "",
  );
  const lines = [notes.length === 0 ? head : `${head}  ${style.dim(clean(notes.join("; ")))}`];
  const details: string[] = [];
  if (step.desc !== undefined) details.push(style.dim(clean(step.desc.split("\n")[0] ?? "")));
  if (step.guard !== undefined) {
    details.push(
      `when  ${conditionText(step.guard, style)}${isSkipped ? style.notice("  (skipped; its arcs are still taken)") : ""}`,
    );
  }
  for (const { when, allow } of step.admit ?? []) {
    const condition = when === undefined ? "otherwise" : conditionText(when, style);
    details.push(
      `admit  ${condition}: ${allow.value === false ? "no" : allow.value === true ? "yes" : clean(allow.when)}`,
    );
  }
  if (step.loop !== undefined) details.push(...loopLines(step.loop, style));
  if (step.input !== undefined) details.push("input", ...indent(fieldLines(step.input, style)));
  if (single !== undefined) details.push(...taskLines(single, style));
  else
    for (const task of step.tasks)
      details.push(`${clean(task.label)}  ${style.busy(clean(task.kind))}`, ...indent(taskLines(task, style)));
  if (step.timeout_ms !== undefined) details.push(`time-out  ${durationText(step.timeout_ms)}`);
  if (step.set !== undefined) details.push("set", ...indent(assignmentLines(step.set)));
  for (const arc of step.next?.arcs ?? []) details.push(arcLine(arc, style));
  return [...lines, ...indent(details)];
}

function loopLines(loop: PlannedLoop, style: Style): string[] {
  const inFlight = loop.max_in_flight === undefined ? "" : `, at most ${clean(loop.max_in_flight.value)} at a time`;
  const how = `as ${clean(loop.iterator)}, ${clean(loop.mode)}${inFlight}`;
  if (loop.cursor !== undefined) {
    const auth = loop.cursor.auth.length === 0 ? "" : ` with ${clean(loop.cursor.auth.join(", "))}`;
    return [
      `loop  over rows claimed by ${clean(loop.cursor.kind)}${auth}, ${how}`,
      ...indent([`claim  ${valueText(loop.cursor.claim, "", style)}`]),
    ];
  }
  const error = loop.in?.errors?.[0]?.message;
  if (loop.count !== undefined) return [`loop  ${plural(loop.count, "time")}, ${how}`];
  const over = loop.in === undefined ? "" : valueText(loop.in, "", style);
  return [`loop  over ${over}, ${how}`, ...(error === undefined ? [] : [`  ${style.bad(clean(error))}`])];
}

function taskLines(task: PlannedTask, style: Style): string[] {
  const lines = [...fieldLines(task.config, style)];
  if (task.input !== undefined) lines.push("input", ...indent(fieldLines(task.input, style)));
  if (task.auth !== undefined && task.auth.length > 0) lines.push(`auth  ${clean(task.auth.join(", "))}`);
  if (task.timeout_ms !== undefined) lines.push(`time-out  ${durationText(task.timeout_ms)}`);
  for (const rule of task.policy) lines.push(`policy  ${ruleText(rule)}`);
  if (task.set !== undefined) lines.push("set", ...indent(assignmentLines(task.set)));
  return lines;
}

function ruleText(rule: JsonObject): string {
  const { when, do: action, to, attempts, backoff, delay, jitter, maxElapsed } = rule;
  const condition = when === undefined ? "otherwise" : `when ${clean(when)}`;
  if (action === "jump") return `${condition}: jump to ${clean(to ?? "")}`;
  if (action !== "retry") return `${condition}: ${clean(action ?? "")}`;
  const parts = [`at most ${clean(attempts ?? 3)} runs`];
  if (backoff !== undefined || delay !== undefined) {
    parts.push(`${backoff === undefined ? "" : `${clean(backoff)} `}delay ${clean(delay ?? 1)} s`);
  }
  if (jitter !== undefined) parts.push("with jitter");
  if (maxElapsed !== undefined) parts.push(`for at most ${clean(maxElapsed)} s`);
  return `${condition}: retry, ${parts.join(", ")}`;
}

function arcLine(arc: PlannedArc, style: Style): string {
  const mark = arc.fires === "no" ? style.dim("✗") : "→";
  const when = arc.when === undefined ? "" : `  when ${conditionText(arc.when, style)}`;
  const back = arc.back === true ? style.dim("  (back)") : "";
  const names = Object.keys(arc.set ?? {});
  const set = names.length === 0 ? "" : style.dim(`  sets ${clean(names.join(", "))}`);
  return `${mark} ${clean(arc.step)}${back}${when}${set}`;
}

function conditionText(condition: PlannedCondition, style: Style): string {
  const { when, value, waits_for: waits, error } = condition;
  const text = clean(when);
  if (error !== undefined) return `${text}  ${style.bad(`cannot be evaluated: ${clean(error)}`)}`;
  if (value !== undefined) return `${text} ${value ? style.good("= true") : style.notice("= false")}`;
  return `${text}  ${placeholder(waits ?? [], style)}`;
}

/** One line a field; maps and lists in maps are written as paths. */
function fieldLines(rendered: Rendered, style: Style): string[] {
  const rows = leaves(rendered.value, "").filter(({ path }) => path !== "");
  const width = Math.min(24, Math.max(0, ...rows.map(({ path }) => path.length)));
  return rows.map(({ path, value }) => {
    const notes = valueText({ ...rendered, value }, path, style);
    return `${padText(clean(path), width)}  ${notes}`;
  });
}

/** Lists stay whole where nothing in them is a map: `[1,2,3]` reads better than three lines. */
function leaves(value: Json, path: string): { path: string; value: Json }[] {
  if (isJsonObject(value) && Object.keys(value).length > 0) {
    return Object.keys(value).flatMap((key) => leaves(value[key] ?? null, path === "" ? key : `${path}.${key}`));
  }
  return [{ path, value }];
}

/** A value, and what is unknown or wrong at its path or below. */
function valueText(rendered: Rendered, path: string, style: Style): string {
  const isHere = (at: string) => at === path || at.startsWith(`${path}.`) || at.startsWith(`${path}[`);
  const waits = (rendered.unknown ?? []).filter((entry) => isHere(entry.path)).flatMap((entry) => entry.waits_for);
  const errors = (rendered.errors ?? []).filter((entry) => isHere(entry.path)).map(({ message }) => message);
  const text = oneLine(rendered.value);
  const parts = [rendered.secret?.some(isHere) ? style.notice(text) : text];
  if (waits.length > 0) parts.push(placeholder([...new Set(waits)], style));
  if (errors.length > 0) parts.push(style.bad(clean(errors.join("; "))));
  return parts.join("  ");
}

function placeholder(names: readonly string[], style: Style): string {
  return style.dim(`‹needs ${clean(names.join(", "))}›`);
}

function durationText(rendered: Rendered): string {
  return typeof rendered.value === "number" ? formatDuration(rendered.value) : clean(rendered.value);
}

function assignmentLines(set: JsonObject): string[] {
  return Object.entries(set).map(([name, value]) => `${clean(name)} = ${oneLine(value)}`);
}

function skippedLine(step: PlannedStep, style: Style): string {
  const why = step.reached === "no" ? "not with these inputs" : "no arc leads to it";
  return `${clean(step.name)}  ${style.dim(why)}`;
}

function needLines(plan: Plan, style: Style): string[] {
  const mark = (ok: boolean) => (ok ? style.good("✓") : style.bad("✗"));
  const by = (users: readonly string[]) => style.dim(clean(`for ${nameList(users)}`));
  const why = (reason: string | undefined) => (reason === undefined ? "" : `  ${clean(reason)}`);
  const section = (title: string, lines: string[]) =>
    lines.length === 0 ? [] : ["", style.strong(title), ...indent(lines)];
  return [
    ...section(
      "tools",
      plan.kinds.map(
        ({ kind, available, reason, used_by }) => `${mark(available)} ${clean(kind)}  ${by(used_by)}${why(reason)}`,
      ),
    ),
    ...section(
      "credentials",
      plan.credentials.map(({ name, found, type, reason, used_by }) => {
        const missing = "missing: --credentials FILE, FLOW_CREDENTIALS_FILE or FLOW_CREDENTIAL_<NAME>";
        return `${mark(found)} ${clean(name)}  ${clean(type ?? "")}${type === undefined ? "" : "  "}${by(used_by)}${why(found ? undefined : (reason ?? missing))}`;
      }),
    ),
    ...section(
      "keychain",
      plan.keychain.map(({ name, kind, credential, used_by }) => {
        const from = credential === undefined ? "" : ` from credential ${credential}`;
        return `${clean(`${name}  ${kind}${from}`)}  ${by(used_by)}`;
      }),
    ),
    ...section(
      "sub-playbooks",
      plan.playbooks.map(
        ({ path, found, file, reason, used_by }) =>
          `${mark(found)} ${clean(path)}  ${by(used_by)}${why(found ? file : reason)}`,
      ),
    ),
  ];
}

function nameList(names: readonly string[]): string {
  const rest = names.length - NAMES_MAX;
  return rest > 0 ? `${names.slice(0, NAMES_MAX).join(", ")} and ${rest} more` : names.join(", ");
}

function clean(value: Json): string {
  return cleanText(typeof value === "string" ? value : JSON.stringify(value));
}

/** A value on one line: of code and statements the first line that says something, and how many follow. */
function oneLine(value: Json): string {
  const lines = typeof value === "string" ? value.trim().split("\n") : [clean(value)];
  const first = clean(lines[0] ?? "");
  const clipped = first.length > VALUE_CHARACTERS_MAX ? `${first.slice(0, VALUE_CHARACTERS_MAX)}…` : first;
  return lines.length === 1 ? clipped : `${clipped} … (${plural(lines.length - 1, "more line")})`;
}

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `   ${line}`);
}
