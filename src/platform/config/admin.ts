import { FlowError } from "../../schema/words/errors.ts";
import { setting } from "../setting.ts";

/** Settings of a server's administrators. */
export const ADMIN_SETTINGS = {
  adminEmails: setting({
    name: "FLOW_ADMIN_EMAILS",
    meaning: "Addresses of the first administrators, comma-separated: they are given the role admin at start, once",
    default: "none",
    parse: (text) => Object.freeze((text ?? "").split(",").flatMap(parseEmail)),
  }),
} as const;

/** In lower case, as identity providers' addresses are compared. */
function parseEmail(text: string): string[] {
  const email = text.trim().toLowerCase();
  if (email === "") return [];
  if (email.length <= 320 && /^[^\s@]+@[^\s@]+$/.test(email)) return [email];
  throw new FlowError("INVALID_SETTING", `FLOW_ADMIN_EMAILS: '${text.trim()}' is no e-mail address`);
}
