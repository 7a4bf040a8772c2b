import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Span } from "../traced/pieces.ts";

const route = getRouteApi("/executions/$executionId");
/** Shortest visible range, milliseconds. */
const LEAST_MS = 20;

/** The visible range of time, from the address, between the execution's start and its end or now. */
export function useZoom(start: number, end: number) {
  const { from, until } = route.useSearch({
    select: ({ from, until }) => ({ from, until }),
    structuralSharing: true,
  });
  const navigate = route.useNavigate();
  const low = start + Math.min(Number(from ?? 0), end - start - 1);
  const high = Math.max(low + 1, Math.min(end, start + (until === undefined ? end - start : Number(until))));
  // The same object while it is the same range: rows are drawn anew for another one.
  const view = useMemo((): Span => ({ from: low, to: high }), [low, high]);
  const show = (wanted: Span | undefined) => {
    const isAll = wanted === undefined || (wanted.from <= start && wanted.to >= end);
    const offsets = isAll
      ? { from: undefined, until: undefined }
      : { from: offset(wanted.from - start), until: offset(Math.min(end, wanted.to) - start) };
    void navigate({ search: (before) => ({ ...before, ...offsets }), replace: true, resetScroll: false });
  };
  /** The requested range with some room around it, and never too short to read. */
  const zoom = (wanted: Span) => {
    const room = Math.max((wanted.to - wanted.from) * 0.05, (LEAST_MS - (wanted.to - wanted.from)) / 2);
    show({ from: Math.max(start, wanted.from - room), to: Math.min(end, wanted.to + room) });
  };
  return {
    view,
    isZoomed: from !== undefined || until !== undefined,
    zoom,
    all: () => show(undefined),
    /** Shows `factor` times as much, moved by a share of the visible range. */
    by(factor: number, move = 0) {
      const length = Math.min(end - start, Math.max(LEAST_MS, (view.to - view.from) * factor));
      const middle = (view.from + view.to) / 2 + move * (view.to - view.from);
      const low = Math.max(start, Math.min(end - length, middle - length / 2));
      show({ from: low, to: low + length });
    },
  };
}

function offset(ms: number): string {
  return String(Math.max(0, Math.round(ms)));
}
