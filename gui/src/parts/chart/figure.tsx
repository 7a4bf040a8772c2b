import type { ReactNode } from "react";
import "../../styles/figures.css";

/** A figure in a card of its own, with a note below it. */
export function Figure({
  name,
  value,
  note,
  tone = "quiet",
}: {
  name: string;
  value: string | undefined;
  note: ReactNode;
  tone?: "quiet" | "good" | "bad";
}): ReactNode {
  return (
    <section className="card figure">
      <h2>{name}</h2>
      <p className="value number">{value ?? "…"}</p>
      <p className={`note tone-${tone}`}>{note || " "}</p>
    </section>
  );
}

/** A share in per cent: never 100 % where something failed. */
export function percentText(rate: number): string {
  const percent = rate === 1 ? 100 : Math.min(99.9, Math.round(rate * 1_000) / 10);
  return `${percent} %`;
}
