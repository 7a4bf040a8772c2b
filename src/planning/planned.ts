import type { Rendered } from "../language/template/render-known.ts";
import type { Diagnostic } from "../schema/words/diagnostic.ts";
import type { Json, JsonObject } from "../schema/words/json.ts";
import type { ArcVerdict, Reachability } from "./walk.ts";

/** What would run: a playbook walked through without calling anything. This is what `flow plan --json` prints. */
export interface Plan extends Requirements {
  file: string;
  path: string;
  name: string;
  entry_step: string;
  final_step?: string;
  /** Longest duration of the run in milliseconds. */
  timeout_ms?: Rendered;
  /** Words to find its executions by. */
  labels?: Rendered;
  workload: Rendered;
  /** In an order in which they can run; those that are not reached last. */
  steps: PlannedStep[];
  warnings: Diagnostic[];
}

/** A condition and, if it is already known, its value. */
export interface PlannedCondition {
  when: Json;
  /** Absent: known only during the run. */
  value?: boolean;
  /** What the value waits for. */
  waits_for?: string[];
  /** Why it cannot be evaluated. */
  error?: string;
}

/** One step as it would run. */
export interface PlannedStep {
  name: string;
  desc?: string;
  /** `yes`: it may be reached; `no`: not with these inputs; `never`: no arc leads to it. */
  reached: Reachability;
  /** Steps that lead here over forward arcs: all that are under way are waited for. */
  after: string[];
  guard?: PlannedCondition;
  admit?: { when?: PlannedCondition; allow: PlannedCondition }[];
  loop?: PlannedLoop;
  input?: Rendered;
  tasks: PlannedTask[];
  timeout_ms?: Rendered;
  /** Variables that the step sets, as written. */
  set?: JsonObject;
  next?: { mode: "exclusive" | "inclusive"; arcs: PlannedArc[] };
}

/** A step's loop. */
export interface PlannedLoop {
  mode: string;
  iterator: string;
  max_in_flight?: Rendered;
  /** How many iterations, where that is known. */
  count?: number;
  in?: Rendered;
  cursor?: { kind: string; auth: string[]; claim: Rendered };
}

/** One task. */
export interface PlannedTask {
  label: string;
  kind: string;
  config: Rendered;
  input?: Rendered;
  /** Names of credentials. */
  auth?: string[];
  timeout_ms?: Rendered;
  /** Rules as written, first match decides; empty: a success continues, an error fails. */
  policy: JsonObject[];
  set?: JsonObject;
}

/** One arc. */
export interface PlannedArc {
  step: string;
  when?: PlannedCondition;
  /** Whether it fires: `maybe` if that is known only during the run. */
  fires: ArcVerdict;
  /** Leads back to a step before. */
  back?: true;
  set?: JsonObject;
}

/** Whether a credential exists, and its type, or why it cannot be used. */
export interface CredentialAnswer {
  found: boolean;
  type?: string;
  reason?: string;
}

/** Whether tasks of a kind can be run here, or why not. */
export interface KindAnswer {
  available: boolean;
  reason?: string;
}

/** The file of a sub-playbook, or why it is missing. */
export interface PlaybookAnswer {
  found: boolean;
  file?: string;
  reason?: string;
}

/** What the steps that may run need. `used_by` names them. */
export interface Requirements {
  credentials: (CredentialAnswer & { name: string; used_by: string[] })[];
  /** Entries that templates read, and the credential behind each. */
  keychain: { name: string; kind: string; credential?: string; used_by: string[] }[];
  kinds: (KindAnswer & { kind: string; used_by: string[] })[];
  playbooks: (PlaybookAnswer & { path: string; used_by: string[] })[];
}
