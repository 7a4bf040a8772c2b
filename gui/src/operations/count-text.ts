/** A count that may have ended at its bound: `500+`. */
export function countText({ count, more }: { count: number; more: boolean }): string {
  return count.toLocaleString("en") + (more ? "+" : "");
}
