import { LoginAnswer, LoginBody } from "../api/gateway.ts";
import { contract } from "./contract.ts";

/** What the command line asks of a gateway itself (interface specification, Gateway). They are no routes of the server. */
export const GATEWAY_ROUTES = {
  login: contract({
    method: "post",
    path: "/api/auth/login",
    summary: "Exchanges an identity provider's ID token for a session",
    access: "anonymous",
    body: LoginBody,
    answer: LoginAnswer,
  }),
  logout: contract({
    method: "post",
    path: "/api/auth/logout",
    summary: "Ends the session of the caller",
    access: "anonymous",
  }),
} as const;
