import type { ReactNode } from "react";
import "../styles/home.css";
import { useTitle } from "../parts/title.ts";
import { Figures } from "./figures.tsx";
import { FirstVisit } from "./first-visit.tsx";
import { Needs, useNeeds } from "./needs.tsx";
import { useIsEmpty } from "./queries.ts";

/** What a person who comes in wants to know: is something wrong, and what waits for me. */
export function HomePage(): ReactNode {
  const isEmpty = useIsEmpty();
  const needs = useNeeds();
  useTitle("");
  if (isEmpty === undefined) return <p className="quiet">Loading …</p>;
  if (isEmpty) return <FirstVisit />;
  return (
    <div className="stack home">
      <div className="row greeting">
        <h1>{greeting(new Date().getHours())}</h1>
        <span className="quiet" role="status">
          {needs.length === 0
            ? "Nothing needs you."
            : `${needs.length === 1 ? "1 thing needs" : `${needs.length} things need`} you.`}
        </span>
      </div>
      <Figures />
      <Needs needs={needs} />
    </div>
  );
}

function greeting(hour: number): string {
  if (hour < 5) return "Good night";
  if (hour < 12) return "Good morning";
  return hour < 18 ? "Good afternoon" : "Good evening";
}
