import assert from "node:assert/strict";
import { after } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { isTest } from "../each-test.ts";
import { DOMAIN, type Person } from "../servers/identity-provider.ts";
import { type LoginService, startLoginService } from "../service/login-service.ts";
import { startBrowser, type TestBrowser } from "./browser.ts";
import { LIMIT_MS } from "./gui.ts";
import type { Look } from "./looks.ts";

/** The whole service with logins, and a browser in front of its gateway. */
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

/** A service and what ends it. */
interface Started {
  service: LoginService;
  close(): Promise<void>;
}

let shared: Promise<Started> | undefined;
// Here and not at the first use: it is to end with the process's tests, not with those of the first file.
if (isTest) after(async () => (await shared)?.close());

/** The service that test files of a process share, and a browser. Each file has users, playbooks and roles of its own. */
export async function startGuiLogin(): Promise<GuiLogin> {
  shared ??= startService({});
  return guiOf({ ...(await shared), close: () => Promise.resolve() });
}

/** A service of the file's own with more settings, and a browser. */
export async function startOwnGuiLogin(settings: NodeJS.ProcessEnv): Promise<GuiLogin> {
  return guiOf(await startService(settings));
}

/** Starts `flow serve --role=all` with a gateway, and an identity provider. */
async function startService(settings: NodeJS.ProcessEnv): Promise<Started> {
  const closers: (() => unknown)[] = [];
  const closing = { after: (close: () => unknown) => void closers.push(close) };
  const service = await startLoginService(closing, { FLOW_GATEWAY_LOGIN_SECONDS: "300", ...settings });
  return {
    service,
    async close() {
      for (const close of closers.reverse()) await close();
    },
  };
}

async function guiOf({ service, close }: Started): Promise<GuiLogin> {
  const browser = await startBrowser();
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
      await browser.close();
      await close();
    },
  };
}

/** Fails where a page complained of anything. */
export function assertQuiet(context: BrowserContext): void {
  assert.deepEqual(complaintsOf(context), []);
}
