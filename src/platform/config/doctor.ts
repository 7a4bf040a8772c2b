import { FlowError } from "../../schema/words/errors.ts";
import { createSecret } from "../crypto/secret.ts";
import { setting } from "../setting.ts";
import { parsePort } from "./address.ts";

/** Settings of the doctor. It listens on FLOW_HOST and calls the server with FLOW_SERVER_TOKEN, as other roles do. */
export const DOCTOR_SETTINGS = {
  doctorPort: setting({
    name: "FLOW_DOCTOR_PORT",
    meaning: "Port of the doctor's tools over HTTP and MCP; 0 takes a free one",
    default: "8765",
    parse: (text) => parsePort("FLOW_DOCTOR_PORT", text ?? "8765"),
  }),
  doctorToken: setting({
    name: "FLOW_DOCTOR_TOKEN",
    meaning: "Token that callers of the doctor must have, so that they need not have the operator's",
    default: "FLOW_SERVER_TOKEN",
    secret: true,
    parse: (text) => {
      if (text === undefined) return undefined;
      if (/^[\x21-\x7e]+$/.test(text)) return createSecret(text);
      throw new FlowError("INVALID_SETTING", "FLOW_DOCTOR_TOKEN must be of visible ASCII characters, without spaces");
    },
  }),
} as const;
