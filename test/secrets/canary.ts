import { randomBytes, randomInt } from "node:crypto";

/** Secrets of one test: random, so that finding one is no accident. */
export interface Canaries {
  /** What the tests hand out, by what it stands for. */
  values: Readonly<Record<string, string>>;
  /** A number that is a secret. */
  number: number;
  /** Where a canary, in any form, stands in the text: what it is, its form, and what stands around it. Empty: nowhere. */
  found(text: string): string[];
}

/** Characters that every form of writing escapes in its own way. */
const AWKWARD = ["/+ =&", `"q'b\\`, "ü€\n", "%2F{}$"];

/** One canary for each name. Each has a part of hex digits that no encoding changes but base64 and hex. */
export function createCanaries(names: readonly string[]): Canaries {
  const cores = new Map(names.map((name) => [name, randomBytes(9).toString("hex")]));
  const values: Record<string, string> = {};
  for (const [index, [name, core]] of [...cores].entries()) {
    const awkward = AWKWARD[index % (AWKWARD.length + 1)] ?? "";
    values[name] = `c4-${core.slice(0, 9)}${awkward}${core.slice(9)}`;
  }
  const number = randomInt(10_000_000, 99_999_999);
  const forms = new Map<string, string>([[String(number), "number"]]);
  for (const [name, core] of cores) {
    // A text that the test itself cuts in two may leave half of one: both halves are looked for.
    for (const half of [core.slice(0, 9), core.slice(9)]) {
      forms.set(half, name);
      forms.set(Buffer.from(half).toString("hex"), `${name} in hex`);
      for (const before of ["", "x", "xx"]) {
        const base64 = Buffer.from(before + half).toString("base64");
        const from = Math.ceil((before.length * 8) / 6);
        forms.set(base64.slice(from, from + 10), `${name} in base64`);
      }
    }
  }
  return {
    values,
    number,
    found(text) {
      const places: string[] = [];
      for (const [form, name] of forms) {
        const at = text.indexOf(form);
        if (at >= 0) places.push(`${name}: …${text.slice(Math.max(0, at - 120), at + 60)}…`);
      }
      return places;
    },
  };
}
