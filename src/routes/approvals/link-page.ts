import { createHash } from "node:crypto";
import type { LinkedApproval } from "../../services/approvals/approvals.ts";
import { type Html, html, raw } from "./html.ts";
import { formFields } from "./link-form.ts";
import { markdownHtml } from "./link-markdown.ts";

/*
 * The page of a link, for people without a login: one document without a script, an image or anything from elsewhere. It has the colours of the
 * page (`gui/src/styles/tokens.css`).
 */

const STYLE = `:root{color-scheme:light dark}
body{margin:0;background:light-dark(#f7f6f3,#131316);color:light-dark(#1c1b18,#ecebe8);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:34rem;margin:8vh auto;padding:0 16px}
section{background:light-dark(#fff,#1a1a1e);border:1px solid light-dark(#e6e4de,#2a2a30);border-radius:12px;padding:22px}
h1{font-size:22px;line-height:1.3;margin:0 0 12px;overflow-wrap:anywhere}
h2{font-size:16px;margin:0 0 8px;overflow-wrap:anywhere}
pre{overflow:auto;padding:8px 12px;border-radius:8px;background:light-dark(#f0efeb,#222227)}
code,pre{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px}
ul,ol{margin:0 0 12px;padding-left:1.3rem;overflow-wrap:anywhere}
a{color:light-dark(#4f46c8,#a5a0f8)}
p{margin:0 0 12px;white-space:pre-wrap;overflow-wrap:anywhere}
p.quiet,small{color:light-dark(#5c5a54,#aeaca6)}
p.bad{color:light-dark(#a3262b,#f0989b)}
form{margin:0 0 16px}
small{display:block;font-size:12.5px}
label{display:block;margin:0 0 12px;font-weight:550}
input,select,textarea{display:block;box-sizing:border-box;width:100%;margin-top:4px;padding:8px;font:inherit;font-weight:400;color:inherit;background:light-dark(#fff,#1a1a1e);border:1px solid light-dark(#928f86,#6f6f78);border-radius:8px}
button{font:inherit;font-weight:550;padding:8px 16px;margin-right:8px;border-radius:8px;border:1px solid light-dark(#928f86,#6f6f78);background:light-dark(#fff,#1a1a1e);color:inherit;cursor:pointer}
button.main{background:light-dark(#4f46c8,#a5a0f8);border-color:light-dark(#4f46c8,#a5a0f8);color:light-dark(#fff,#16151f)}
:focus-visible{outline:2px solid light-dark(#4f46c8,#a5a0f8);outline-offset:2px}`;

const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

/** What the page may do: show itself, and send its form to where it came from. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  // Within this origin, so that browsers say of the form where it comes from; no other one learns the address.
  "referrer-policy": "same-origin",
  "x-frame-options": "DENY",
  "x-robots-tag": "noindex, nofollow",
  "cache-control": "no-store",
};

/** The page that asks. `again`: what was sent, and why it was not taken. */
export function askingPage({ row }: LinkedApproval, again?: { given: URLSearchParams; problem: string }): string {
  const { title, description, form } = row;
  const about = html`<h1>${title}</h1>${description === null ? html`` : markdownHtml(description)}`;
  const problem = again === undefined ? html`` : html`<p class="bad" role="alert">${again.problem}</p>`;
  const fields = form === null ? html`` : formFields(form, again?.given);
  const due = row.dueAt === null ? html`` : html`<p class="quiet">Until ${row.dueAt.toISOString()}</p>`;
  return page(
    title,
    html`${about}${due}${problem}<form method="post">${fields}
<label>Comment (optional)<textarea name="comment" rows="2" maxlength="2000">${again?.given.get("comment") ?? ""}</textarea></label>
<button class="main" name="decision" value="approve">Approve</button><button name="decision" value="reject">Reject</button></form>
<p class="quiet">The link can be used once. Anyone who has it can decide: do not pass it on.</p>`,
  );
}

/** The page after a decision, or in place of one. */
export function tellingPage(title: string, text: string): string {
  return page(title, html`<h1>${title}</h1><p role="status">${text}</p>`);
}

function page(title: string, content: Html): string {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · flow</title><style>${raw(STYLE)}</style></head>
<body><main><section>${content}</section></main></body></html>
`.text;
}
