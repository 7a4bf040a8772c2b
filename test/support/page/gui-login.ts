import assert from "node:assert/strict";
import type { BrowserContext, Page } from "playwright-core";
import { DOMAIN, type Person } from "../servers/identity-provider.ts";
import { type LoginService, startLoginService } from "../service/login-service.ts";
import { startBrowser, type TestBrowser } from "./browser.ts";
import { LIMIT_MS } from "./gui.ts";
import type { Look } from "./looks.ts";

/** The whole service with logins, and a browser in front of its gateway: one of each for a test file. */
export interface GuiLogin {
  service: LoginService;
  browser: TestBrowser;
  /** The gateway. */
  url: string;
  /** A fresh browser; what its pages complain of is at {@link complaintsOf}. */
  fresh(look?: Look): Promise<BrowserContext>;
  /** Opens an address of the page, logs this person in as they would, and waits until they are back there. */
  enter(context: BrowserContext, person: Person, path?: string): Promise<Page>;
  /** Adds a user with these roles, so that the first login finds them. */
  add(person: Person, ...roles: string[]): Promise<void>;
  close(): Promise<void>;
}

const complaints = new WeakMap<BrowserContext, string[]>();

/** Errors of scripts, and what the policy kept out, in all pages of a browser. Refused calls are no faults here. */
export function complaintsOf(context: BrowserContext): string[] {
  return complaints.get(context) ?? [];
}

/** Starts `flow serve --role=all` with a gateway, an identity provider, and a browser. */
export async function startGuiLogin(settings: NodeJS.ProcessEnv = {}): Promise<GuiLogin> {
  const closers: (() => unknown)[] = [];
  const closing = { after: (close: () => unknown) => void closers.push(close) };
  const service = await startLoginService(closing, { FLOW_GATEWAY_LOGIN_SECONDS: "300", ...settings });
  const browser = await startBrowser();
  closers.push(() => browser.close());
  const url = service.server.gatewayUrl;
  return {
    service,
    browser,
    url,
    async fresh({ width = 1280, scheme = "light" } = {}) {
      const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme: scheme });
      context.setDefaultTimeout(LIMIT_MS);
      const said: string[] = [];
      complaints.set(context, said);
      context.on("page", (page) => {
        page.on("pageerror", (error) => said.push(error.message));
        page.on("console", (message) => {
          if (message.type() === "error" && !/status of (401|403|404|409|422)/.test(message.text()))
            said.push(message.text());
        });
      });
      return context;
    },
    async enter(context, person, path = "/executions") {
      service.provider.visitor = person;
      const page = await context.newPage();
      await page.goto(`${url}${path}`);
      await page.getByRole("button", { name: `Log in with ${DOMAIN}` }).click();
      await page.waitForURL(`${url}${path}`);
      return page;
    },
    async add({ email = "", name = email }, ...roles) {
      await service.operator("POST", "/api/auth/users", { email, display_name: name, roles });
    },
    async close() {
      for (const close of closers.reverse()) await close();
    },
  };
}

/** Fails where a page complained of anything. */
export function assertQuiet(context: BrowserContext): void {
  assert.deepEqual(complaintsOf(context), []);
}
