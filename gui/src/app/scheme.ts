/** What this browser keeps of how the page looks: light or dark (the system's setting, unless the user chose), and the rail. */

const KEY = "flow.scheme";
const RAIL_KEY = "flow.rail";
/** A choice of colours. */
export type Scheme = "system" | "light" | "dark";

/** What was chosen on this browser. */
export function chosenScheme(): Scheme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** Keeps a choice and shows it. */
export function chooseScheme(scheme: Scheme): void {
  if (scheme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, scheme);
  applyLook();
}

/** Whether the rail shows names beside its icons. */
export function chosenRail(): "wide" | "narrow" {
  return localStorage.getItem(RAIL_KEY) === "narrow" ? "narrow" : "wide";
}

/** Keeps how wide the rail is, and shows it so. */
export function chooseRail(rail: "wide" | "narrow"): void {
  localStorage.setItem(RAIL_KEY, rail);
  applyLook();
}

/** Shows the page as it was chosen. */
export function applyLook(): void {
  const { dataset } = document.documentElement;
  const scheme = chosenScheme();
  if (scheme === "system") delete dataset["scheme"];
  else dataset["scheme"] = scheme;
  dataset["rail"] = chosenRail();
}
