import { Keyboard, Monitor, Moon, Sun } from "lucide-react";
import { type ReactNode, useState } from "react";
import { HAS_LOGIN } from "../api/session.ts";
import { useWho, WhoFacts } from "../login/who.tsx";
import { Menu } from "../parts/menu.tsx";
import { chooseScheme, chosenScheme, type Scheme } from "./scheme.ts";

const SCHEMES = [
  { scheme: "system", word: "System", Sign: Monitor },
  { scheme: "light", word: "Light", Sign: Sun },
  { scheme: "dark", word: "Dark", Sign: Moon },
] as const satisfies readonly { scheme: Scheme; word: string; Sign: unknown }[];

/** Who is logged in, at the foot of the rail; their menu has the colours, the keys and the way out. */
export function Account({ onKeys }: { onKeys(): void }): ReactNode {
  const user = useWho();
  const [name, role] =
    user?.kind === "user"
      ? [user.display_name, user.roles.join(", ") || "no role yet"]
      : [user?.kind === "worker" ? "Worker" : "Operator", HAS_LOGIN ? "" : "this server's token"];
  return (
    <Menu
      className="account"
      panelClass="account-panel"
      label={
        <>
          <span className="face" aria-hidden="true">
            {initialsOf(name)}
          </span>
          <span className="unseen">Account:</span>
          <span>
            {name} <small>{role}</small>
          </span>
        </>
      }
    >
      <AccountPanel onKeys={onKeys} />
    </Menu>
  );
}

/** What the menu of the account holds; on phones it stands among the other things. */
export function AccountPanel({ onKeys }: { onKeys(): void }): ReactNode {
  return (
    <>
      {HAS_LOGIN && <WhoFacts />}
      <div className="pad">
        <SchemeChoice />
      </div>
      <button type="button" data-closes onClick={onKeys}>
        <Keyboard className="icon" aria-hidden="true" />
        Keys
      </button>
    </>
  );
}

function SchemeChoice(): ReactNode {
  const [scheme, setScheme] = useState(chosenScheme);
  return (
    <fieldset className="segments">
      <legend className="unseen">Colours</legend>
      {SCHEMES.map(({ scheme: own, word, Sign }) => (
        <button
          key={own}
          type="button"
          aria-pressed={scheme === own}
          onClick={() => {
            chooseScheme(own);
            setScheme(own);
          }}
        >
          <Sign className="icon" aria-hidden="true" />
          {word}
        </button>
      ))}
    </fieldset>
  );
}

function initialsOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
  return words
    .slice(0, 2)
    .map((word) => word.charAt(0).toUpperCase())
    .join("");
}
