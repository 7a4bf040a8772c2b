import type { Secret } from "../../platform/crypto/secret.ts";

/** Shortest token beyond loopback, in characters: 128 bits even of hexadecimal digits, which cannot be guessed over a network. */
const TOKEN_CHARS_MIN = 32;

/** Why these tokens, by their setting, are too short for a listener that other machines reach; undefined where they are not. */
export function shortTokens(tokens: Readonly<Record<string, Secret | undefined>>): string | undefined {
  const short = Object.keys(tokens).filter(
    (name) => (tokens[name]?.reveal().length ?? TOKEN_CHARS_MIN) < TOKEN_CHARS_MIN,
  );
  if (short.length === 0) return undefined;
  const what = `${short.join(" and ")} ${short.length === 1 ? "has" : "have"} fewer than ${TOKEN_CHARS_MIN} characters`;
  return `${what} and could be guessed. Make another with 'openssl rand -hex 32', and give it to all who have the old one`;
}
