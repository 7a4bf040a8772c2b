/** Light or dark: the system's setting, unless the user chose. */

const KEY = "flow.scheme";
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
  applyScheme();
}

/** Shows the page in the scheme that was chosen. */
export function applyScheme(): void {
  const scheme = chosenScheme();
  if (scheme === "system") delete document.documentElement.dataset["scheme"];
  else document.documentElement.dataset["scheme"] = scheme;
}
