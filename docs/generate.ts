import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DIAGNOSTIC_RULES } from "../src/language/document/source/codes.ts";
import { PERMISSIONS_PAGE, permissionsPage } from "./permissions.ts";

/** Where the page stands in the checkout. */
export const DIAGNOSTICS_PAGE = join(import.meta.dirname, "../../docs/diagnostics.md");

/** docs/diagnostics.md: every code of the loader with its meaning, from the one table that the loader uses. */
export function diagnosticsPage(): string {
  const rows = (severity: string) =>
    Object.entries(DIAGNOSTIC_RULES)
      .filter(([, rule]) => rule.severity === severity)
      .map(([code, rule]) => `| \`${code}\` | ${rule.meaning.replaceAll("|", "\\|")} |`)
      .join("\n");
  return `# Diagnostics

\`flow validate\`, and every command that reads a playbook, reports all problems of a document at once, in the order of the
text: \`file:line:column  code  message  (hint)\`. Errors keep the document from running; warnings do not.

This page is generated (\`npm run generate\`).

## Errors

| Code | Meaning |
|---|---|
${rows("error")}

## Warnings

| Code | Meaning |
|---|---|
${rows("warning")}
`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  writeFileSync(DIAGNOSTICS_PAGE, diagnosticsPage());
  writeFileSync(PERMISSIONS_PAGE, permissionsPage());
}
