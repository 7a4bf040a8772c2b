import { FlowError } from "../../schema/words/errors.ts";
import { setting } from "../setting.ts";

/** Settings of commands that log in at an identity provider. */
export const LOGIN_SETTINGS = {
  idpClientId: setting({
    name: "FLOW_IDP_CLIENT_ID",
    meaning: "Id under which 'flow login' is registered at the identity provider, as a public client with PKCE",
    default: "none: 'flow login' takes an ID token",
    parse: (text) => {
      if (text === undefined || (/^[\x21-\x7e]+$/.test(text) && text.length <= 255)) return text;
      throw new FlowError("INVALID_SETTING", "FLOW_IDP_CLIENT_ID must be of at most 255 visible ASCII characters");
    },
  }),
} as const;
