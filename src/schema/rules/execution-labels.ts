/*
 * Labels of executions: names and values that people give a run, and by which lists are filtered. They are shown to everyone who may
 * view the execution: no place for a secret.
 */

/** Most labels of an execution: the playbook's and those of its start together. */
export const LABELS_MAX = 32;
/** Longest name, characters. */
export const LABEL_NAME_MAX = 63;
/** Longest value, characters. */
export const LABEL_VALUE_MAX = 256;

/** What the name of a label must be. */
export const LABEL_NAME_RULE = `letters, digits and . _ - /, first a letter or a digit, ${LABEL_NAME_MAX} characters at most`;
/** What the value of a label must be. */
export const LABEL_VALUE_RULE = `one line of 1 to ${LABEL_VALUE_MAX} characters`;

/** Whether labels may have this name. */
export function isLabelName(name: string): boolean {
  return name.length <= LABEL_NAME_MAX && /^[A-Za-z0-9][A-Za-z0-9._/-]*$/.test(name);
}

/** Whether labels may have this value. */
export function isLabelValue(value: string): boolean {
  return value !== "" && value.length <= LABEL_VALUE_MAX && !/[\p{Cc}\p{Surrogate}\u2028\u2029]/u.test(value);
}

/** What is wrong with labels as a sentence's end; undefined if nothing is. */
export function labelsProblem(labels: Readonly<Record<string, string>>): string | undefined {
  const all = Object.entries(labels);
  if (all.length > LABELS_MAX) return `has ${all.length} labels; ${LABELS_MAX} are allowed`;
  const named = all.find(([name]) => !isLabelName(name));
  if (named !== undefined) return `has the label '${named[0].slice(0, LABEL_NAME_MAX)}': a name is ${LABEL_NAME_RULE}`;
  const valued = all.find(([, value]) => !isLabelValue(value));
  if (valued !== undefined)
    return `has a value of the label '${valued[0]}' that cannot be one: it must be ${LABEL_VALUE_RULE}`;
  return undefined;
}
