import { type CliCommand, type CliInput, type CliOption, type CommandGroup, EXIT } from "./command.ts";
import { placeholder, unknownCommand } from "./parse.ts";

/** `flow help [command]`. Throws `FlowError` USAGE for a command that does not exist. */
export async function printHelp(input: CliInput, groups: readonly CommandGroup[]): Promise<number> {
  const [name] = input.arguments;
  if (name === undefined) {
    input.io.stdout.write(overview(groups));
    return EXIT.ok;
  }
  const commands = groups.flatMap((group) => group.commands);
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) throw unknownCommand(name, commands);
  input.io.stdout.write(commandHelp(command));
  return EXIT.ok;
}

/** `flow --help`: what flow is, its commands, how to begin. */
export function overview(groups: readonly CommandGroup[]): string {
  const width = Math.max(...groups.flatMap(({ commands }) => commands.map((command) => command.name.length)));
  const sections = groups.map(({ title, commands }) => {
    const lines = commands.map((command) => `  ${command.name.padEnd(width)}  ${command.summary}`);
    return [title, ...lines].join("\n");
  });
  return `flow runs playbooks: workflows written as YAML, whose steps call HTTP services, databases, Python code, shell
commands and other playbooks, with loops, retries and conditions. One program, no server needed to begin.

Usage: flow <command> [arguments] [options]

${sections.join("\n\n")}

Examples
  flow run hello.yaml                       run a playbook here and watch it
  flow validate playbooks                   check every document below a folder
  flow run load.yaml --set day=2026-01-31 --json | jq .result

'flow help <command>' explains a command. Documentation: README.md and docs/ of this package.
`;
}

/** `flow <command> --help`. */
export function commandHelp(command: CliCommand): string {
  const words = command.arguments.map(placeholder);
  const usage = ["flow", command.name, ...words, ...(command.options.length > 0 ? ["[options]"] : [])].join(" ");
  const sections = [`${command.summary}.`, `Usage: ${usage}`];
  if (command.arguments.length > 0) {
    sections.push(
      columns(
        "Arguments",
        command.arguments.map((argument) => [argument.name, argument.summary]),
      ),
    );
  }
  if (command.options.length > 0) {
    sections.push(
      columns(
        "Options",
        command.options.map((option) => [
          optionWords(option),
          option.choices === undefined ? option.summary : `${option.summary} (${option.choices.join(", ")})`,
        ]),
      ),
    );
  }
  if (command.details !== undefined) sections.push(command.details);
  return `${sections.join("\n\n")}\n`;
}

function optionWords({ name, short, value }: CliOption): string {
  const long = value === undefined ? `--${name}` : `--${name} ${value}`;
  return short === undefined ? long : `-${short}, ${long}`;
}

function columns(title: string, rows: readonly (readonly [left: string, right: string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return [title, ...rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)].join("\n");
}
