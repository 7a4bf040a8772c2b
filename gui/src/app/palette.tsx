import { Search } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useDeferredValue, useEffect, useRef, useState } from "react";
import "../styles/palette.css";
import { type Command, useCommands } from "./commands.ts";

/** Goes to anything, and does anything, by a few letters of its name. It is loaded when it is first opened. */
export function Palette({ onClose, onKeys }: { onClose(): void; onKeys(): void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  }, []);
  const run = (command: Command) => {
    // The page beneath is reached again only when nothing is over it.
    dialog.current?.close();
    command.act();
  };
  const { text, write, commands, chosen, choose, go, isLooking } = useChoice(onKeys, run);
  const press = (event: KeyboardEvent) => {
    // Enter ends the composition of a character then.
    if (event.nativeEvent.isComposing) return;
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (event.key === "Enter") go();
    else if (move === undefined) return;
    else choose(Math.max(0, Math.min(commands.length - 1, chosen + move)));
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Search or run a command"
      onClose={onClose}
      onMouseDown={({ target, currentTarget }) => target === currentTarget && currentTarget.close()}
    >
      <label className="palette-input">
        <Search className="icon" aria-hidden="true" />
        <span className="unseen">Search or run a command</span>
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls="commands"
          aria-autocomplete="list"
          aria-activedescendant={commands.length > 0 ? `command-${chosen}` : undefined}
          placeholder="An execution's id, a playbook, a page, or what to do"
          spellCheck={false}
          autoComplete="off"
          value={text}
          onChange={({ target }) => write(target.value)}
          onKeyDown={press}
        />
      </label>
      <div id="commands" role="listbox" aria-label="What matches">
        {commands.map((command, index) => (
          <Option
            key={command.key}
            command={command}
            index={index}
            isFirst={command.group !== commands[index - 1]?.group}
            isChosen={index === chosen}
            onPoint={() => choose(index)}
            onChoose={() => run(command)}
          />
        ))}
      </div>
      <Foot nothing={commands.length > 0 ? undefined : isLooking ? "Looking …" : `Nothing matches “${text}”.`} />
    </dialog>
  );
}

/** What is typed, what matches it, and which of that is chosen; `go` runs it, once the list is of what was typed. */
function useChoice(onKeys: () => void, run: (command: Command) => void) {
  const [text, setText] = useState("");
  const [at, choose] = useState(0);
  const [isGoing, setGoing] = useState(false);
  const wanted = text.trim();
  const listed = useDeferredValue(wanted);
  const { commands, isLooking } = useCommands(listed, onKeys);
  const chosen = Math.min(at, commands.length - 1);
  useEffect(() => document.getElementById(`command-${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen]);
  useEffect(() => {
    if (!isGoing || listed !== wanted || (commands.length === 0 && isLooking)) return;
    setGoing(false);
    const command = commands[chosen];
    if (command !== undefined) run(command);
  });
  const write = (typed: string) => {
    setText(typed);
    choose(0);
    setGoing(false);
  };
  return { text, write, commands, chosen, choose, go: () => setGoing(true), isLooking };
}

/** What the keys do; or why nothing is listed. */
function Foot({ nothing }: { nothing: string | undefined }): ReactNode {
  return (
    <p className="palette-foot quiet" role="status">
      {nothing ?? (
        <>
          <kbd>↑</kbd> <kbd>↓</kbd> choose <kbd>Enter</kbd> go <kbd>Esc</kbd> close
        </>
      )}
    </p>
  );
}

interface OptionProps {
  command: Command;
  index: number;
  /** The first of its group, which it names. */
  isFirst: boolean;
  isChosen: boolean;
  onPoint(): void;
  onChoose(): void;
}

function Option({ command, index, isFirst, isChosen, onPoint, onChoose }: OptionProps): ReactNode {
  return (
    <>
      {isFirst && (
        <div className="palette-group" role="presentation">
          {command.group}
        </div>
      )}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the combobox */}
      {/* biome-ignore lint/a11y/useFocusableInteractive: focus stays in the combobox */}
      <div id={`command-${index}`} role="option" aria-selected={isChosen} onMouseMove={onPoint} onClick={onChoose}>
        <span className="name">{command.name}</span>
        {command.detail !== undefined && <span className="quiet number">{command.detail}</span>}
      </div>
    </>
  );
}
