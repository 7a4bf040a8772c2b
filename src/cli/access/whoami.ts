import { loadConfig } from "../../platform/config/config.ts";
import { type CliInput, EXIT } from "../command-line/command.ts";
import { readMe } from "../server/access-api.ts";
import { serverTarget } from "../server/target.ts";
import { cleanText, jsonText } from "../terminal/text.ts";

/** `flow whoami`: as whom commands call, and what their roles give beside playbooks. */
export async function showIdentity(input: CliInput): Promise<number> {
  const { options, io } = input;
  const target = await serverTarget(input, loadConfig(io.environment));
  const me = await readMe({ target, signal: io.signal });
  const at = `at ${target.url} (${target.origin})`;
  if (options["json"] === true) io.stdout.write(`${jsonText({ server: target.url, ...me })}\n`);
  else if (me.kind !== "user") io.stdout.write(`${cleanText(`The ${me.kind} ${at}`)}\n`);
  else {
    const { display_name, email, user_id, roles, permissions, expires_at } = me;
    io.stdout.write(`${cleanText(`${display_name} <${email}>, user ${user_id} ${at}`)}\n`);
    const rows = [
      ["roles:", roles.join(", ") || "none: an administrator grants them"],
      ["permissions:", permissions.join(", ") || "none beside playbooks"],
      ["session:", `until ${expires_at}`],
    ] as const;
    for (const [label, text] of rows) io.stdout.write(`${label.padEnd(14)}${cleanText(text)}\n`);
  }
  return EXIT.ok;
}
