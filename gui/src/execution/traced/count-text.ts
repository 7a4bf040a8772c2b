/**
 * `12,345`. A language's own way, `Intl.NumberFormat`, takes 20 to 80 ms when a page first uses it, and `toLocaleString` a third of a second
 * for ten thousand rows.
 */
export function countText(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}
