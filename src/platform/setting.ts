import { FlowError } from "../schema/words/errors.ts";

/** One setting of the program: an environment variable and what it means. */
export interface SettingDefinition<T> {
  name: string;
  /** A further name of it, which other programs know too; it is read where `name` is not set. */
  alias?: string;
  meaning: string;
  /** Text of the default, as `flow config` shows it. */
  default: string;
  /** Its value is never shown. */
  secret?: true;
  /** Throws `FlowError` INVALID_SETTING for text that cannot be used. */
  parse(text: string | undefined): T;
}

/** Keeps the precise type of the setting's value. */
export function setting<T>(definition: SettingDefinition<T>): SettingDefinition<T> {
  return definition;
}

/** A setting that is a whole number from 1 to `max`. */
export function countSetting(name: string, meaning: string, fallback: number, max = 1_000_000_000) {
  return setting({
    name,
    meaning,
    default: String(fallback),
    parse: (text) => {
      const number = text === undefined ? fallback : Number(text);
      if (Number.isInteger(number) && number >= 1 && number <= max) return number;
      throw new FlowError("INVALID_SETTING", `${name} must be a whole number from 1 to ${max}, got '${text}'`);
    },
  });
}

/** The value that a text names, in any case of its letters. Throws `FlowError` INVALID_SETTING for any other. */
export function oneOf<const T extends string>(name: string, text: string, values: readonly T[]): T {
  const found = values.find((value) => value === text.toLowerCase());
  if (found !== undefined) return found;
  throw new FlowError("INVALID_SETTING", `${name} must be one of ${values.join(", ")}, got '${text}'`);
}

/** Shortest time of a setting, seconds: less than a millisecond would be none. */
const SECONDS_MIN = 0.001;
/** Longest time of a setting: what a timer can wait, 24 days. */
const SECONDS_MAX = 2_147_483;

/** A setting in seconds, a fraction allowed; milliseconds in the program. */
export function secondsSetting(name: string, meaning: string, fallback: number) {
  return setting({
    name,
    meaning,
    default: String(fallback),
    parse: (text) => milliseconds(name, text) ?? fallback * 1_000,
  });
}

/** The milliseconds of a text in seconds, undefined for an empty one. Throws `FlowError` INVALID_SETTING. */
export function milliseconds(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (seconds >= SECONDS_MIN && seconds <= SECONDS_MAX) return Math.round(seconds * 1_000);
  const range = `from ${SECONDS_MIN} to ${SECONDS_MAX}`;
  throw new FlowError("INVALID_SETTING", `${name} must be a number of seconds ${range}, got '${text}'`);
}
