import { FlowError } from "../../../schema/words/errors.ts";

/** How much one rendering may use. Reaching a limit is an error with code `TEMPLATE_BUDGET`, raised before the work. */
export interface Limits {
  /** Evaluated nodes, loop rounds, compared items. Default 5,000,000. */
  readonly steps: number;
  /** Characters of text produced, intermediate text included. Default 16 Mi. */
  readonly text: number;
  /** List items produced: `range`, `split`, slices, sorted and mapped lists. Default 1,000,000. */
  readonly items: number;
}

/** The limits of a rendering that names none. The worst template reaches one of them in less than a second. */
const DEFAULT_LIMITS: Limits = { steps: 5_000_000, text: 16 * 1024 * 1024, items: 1_000_000 };

/** Deepest nesting that an expression, the blocks of a template or a source document may have. */
export const NESTING_MAX = 200;

/** Longest text of one expression in UTF-16 units. */
export const EXPRESSION_MAX = 256 * 1024;

/** Deepest nesting of a value that is compared, printed or handed out. */
export const VALUE_DEPTH_MAX = 1_000;

/** What is left of the limits. One budget serves a whole rendering, with all its texts and loops. */
export interface Budget {
  steps: number;
  text: number;
  items: number;
  readonly limits: Limits;
  /** Shared with other renderings. */
  readonly account: Account | undefined;
}

/**
 * One account for the renderings that follow one after the other without a pause, such as all conditions and assignments of a
 * decision. It counts work and not time, so that the same work gives the same decision on every machine.
 */
export interface Account {
  /** What is left, in steps; below 0 when it is used up. */
  left: number;
}

/**
 * Steps of an account. The dearest templates that were tried (sorting, JSON, searching, formatting) used it up within 20 to 75
 * ms of processor time; most within 30.
 */
export const ACCOUNT_STEPS = 300_000;

/** A full account. */
export function openAccount(): Account {
  return { left: ACCOUNT_STEPS };
}

/** Steps of a list item. */
const ITEM_STEPS = 0.25;
/** Steps of a character. */
const CHARACTER_STEPS = 1 / 16;

/** A full budget; limits that are not given have their defaults. */
export function openBudget(limits: Partial<Limits> = {}, account?: Account): Budget {
  const all = { ...DEFAULT_LIMITS, ...limits };
  return { steps: all.steps, text: all.text, items: all.items, limits: all, account };
}

/** Takes `count` evaluation steps from the budget. */
export function spendSteps(budget: Budget, count: number): void {
  budget.steps -= count;
  if (budget.steps < 0) throw exhausted("steps", budget);
  if (budget.account !== undefined) charge(budget.account, count);
}

function charge(account: Account, steps: number): void {
  account.left -= steps;
  if (account.left < 0) throw new FlowError("DECISION_BUDGET", DECISION_MESSAGE);
}

const DECISION_MESSAGE =
  "Conditions, admissions, assignments and collections that the server evaluates together need too much work. " +
  "Make them smaller, or do the work in a task";

/** Maps of more keys are tables for the engine, which takes ten times as long to go through their keys. */
const FEW_KEYS = 100;

/** Takes the steps of going through `count` keys of a map once: 0.3 to 0.5 µs were measured for each key of a large one. */
export function spendKeys(budget: Budget, count: number): void {
  spendSteps(budget, count <= FEW_KEYS ? count >>> 3 : 2 * count);
}

/** Takes the steps of reading through `length` characters: engines search and compare some 64 of them in a step's time. */
export function spendScan(budget: Budget, length: number): void {
  if (length >= 64) spendSteps(budget, length >>> 6);
}

/**
 * Takes the steps of looking for a text of `part` characters in one of `length`. The engine's search costs their product
 * where the texts repeat themselves: 0.17 s were measured for a thousand characters in a million.
 */
export function spendSearch(budget: Budget, length: number, part: number): void {
  if (part > length) return;
  spendScan(budget, length);
  if (part > 8) spendSteps(budget, Math.floor(((length - part) * part) / 512));
}

/** Takes `length` characters of text from the budget. Call it before the text is built. */
export function spendText(budget: Budget, length: number): void {
  budget.text -= length;
  if (budget.text < 0) throw exhausted("text", budget);
  if (budget.account !== undefined) charge(budget.account, length * CHARACTER_STEPS);
}

/** Takes `count` list items from the budget. Call it before the list is built. */
export function spendItems(budget: Budget, count: number): void {
  budget.items -= count;
  if (budget.items < 0) throw exhausted("items", budget);
  if (budget.account !== undefined) charge(budget.account, count * ITEM_STEPS);
}

/** The error for a value nested deeper than {@link VALUE_DEPTH_MAX}. */
export function tooDeep(): FlowError {
  return new FlowError(
    "TEMPLATE_BUDGET",
    `A template met a value that is nested more than ${VALUE_DEPTH_MAX} deep. Reshape the value in a python task.`,
    { detail: { limit: "depth", max: VALUE_DEPTH_MAX } },
  );
}

const LIMIT_NAMES = { steps: "evaluation steps", text: "characters of text", items: "list items" } as const;

function exhausted(limit: keyof Limits, budget: Budget): FlowError {
  const max = budget.limits[limit];
  return new FlowError(
    "TEMPLATE_BUDGET",
    `A template needs more than ${max.toLocaleString("en-US")} ${LIMIT_NAMES[limit]} (limit "${limit}"). ` +
      "Make it smaller, or do the work in a python task.",
    { detail: { limit, max } },
  );
}
