import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

/** The name, which leads to the first page. */
export function Brand(): ReactNode {
  return (
    <Link to="/" className="brand">
      <svg viewBox="0 0 24 24" aria-hidden="true">
        <path d="M3 17c5 0 4-10 9-10s4 10 9 10" fill="none" strokeWidth="3" strokeLinecap="round" />
        <circle cx="12" cy="7" r="2.6" />
      </svg>
      <span className="name">flow</span>
    </Link>
  );
}
