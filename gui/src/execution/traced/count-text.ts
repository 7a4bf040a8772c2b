/* `toLocaleString` looks its language up each time: of ten thousand rows that is a third of a second. */
const NUMBERS = new Intl.NumberFormat("en");

/** `12,345`. */
export function countText(count: number): string {
  return count < 1_000 && count >= 0 ? String(count) : NUMBERS.format(count);
}
