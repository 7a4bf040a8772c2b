/** A line of two texts beside each other. */
export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
}

/** Lines beyond which the middle is shown as replaced as a whole: the table of both would be too large. */
const COMPARED_MAX = 3_000;

/** What was taken out and put in, by the longest common subsequence of lines; beginnings and ends that are the same cost nothing. */
export function lineDiff(before: string, after: string): DiffLine[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [
    ...old.slice(0, start).map(same),
    ...middle(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...old.slice(old.length - end).map(same),
  ];
}

function middle(old: readonly string[], now: readonly string[]): DiffLine[] {
  if (old.length > COMPARED_MAX || now.length > COMPARED_MAX) {
    return [
      ...old.map((text) => ({ kind: "removed" as const, text })),
      ...now.map((text) => ({ kind: "added" as const, text })),
    ];
  }
  const width = now.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        old[i] === now[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0);
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    const [one, other] = [old[i], now[j]];
    if (one !== undefined && one === other) {
      lines.push({ kind: "same", text: one });
      i += 1;
      j += 1;
    } else if (
      other !== undefined &&
      (one === undefined || (lengths[i * width + j + 1] ?? 0) > (lengths[(i + 1) * width + j] ?? 0))
    ) {
      lines.push({ kind: "added", text: other });
      j += 1;
    } else if (one !== undefined) {
      lines.push({ kind: "removed", text: one });
      i += 1;
    }
  }
  return lines;
}
