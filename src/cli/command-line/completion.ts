import { type CliEntry, type CliInput, type CliOption, EXIT, optionsOf } from "./command.ts";

/** `flow completion bash|zsh|fish`: a script made from the command table. */
export async function printCompletion(input: CliInput, commands: readonly CliEntry[]): Promise<number> {
  const [shell] = input.arguments;
  // The parser has checked the shell's name.
  input.io.stdout.write(SCRIPTS[shell as keyof typeof SCRIPTS](commands));
  return EXIT.ok;
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** Options that take a file, by their placeholder. */
function takesFile(option: CliOption): boolean {
  return option.value?.includes("FILE") === true;
}

/** Words that an entry takes: its commands, those of its commands, and the choices of its arguments. */
function wordsOf(entry: CliEntry, commands: readonly CliEntry[]): string[] {
  const words =
    "commands" in entry
      ? [...entry.commands.map(({ name }) => name), ...entry.commands.flatMap((inner) => wordsOf(inner, commands))]
      : entry.arguments.flatMap(({ complete, choices = [] }) =>
          complete === "command" ? commands.map((candidate) => candidate.name) : choices,
        );
  return [...new Set(words)];
}

function takesFiles(entry: CliEntry): boolean {
  if ("commands" in entry) return entry.commands.some(takesFiles);
  return entry.arguments.some((argument) => argument.complete === "file");
}

function optionNames(entry: CliEntry): string[] {
  return [...optionsOf(entry), HELP].map((option) => `--${option.name}`);
}

const HELP: CliOption = { name: "help", summary: "Explain this command" };

function bashScript(commands: readonly CliEntry[]): string {
  const cases = commands.map((command) => {
    const values = optionsOf(command).filter((option) => option.choices !== undefined || takesFile(option));
    const valueCases = values.map((option) =>
      option.choices === undefined
        ? `        --${option.name}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;`
        : `        --${option.name}) COMPREPLY=($(compgen -W "${option.choices.join(" ")}" -- "$current")); return ;;`,
    );
    const previous = valueCases.length === 0 ? [] : ['      case "$previous" in', ...valueCases, "      esac"];
    const words = wordsOf(command, commands).join(" ");
    const offers = [
      ...(words === "" ? [] : [`COMPREPLY+=($(compgen -W "${words}" -- "$current"))`]),
      ...(takesFiles(command) ? ["compopt -o filenames", 'COMPREPLY+=($(compgen -f -- "$current"))'] : []),
    ];
    return [
      `    ${command.name})`,
      ...previous,
      "      if [[ $current == -* ]]; then",
      `        COMPREPLY=($(compgen -W "${optionNames(command).join(" ")}" -- "$current"))`,
      "        return",
      "      fi",
      ...offers.map((line) => `      ${line}`),
      "      ;;",
    ].join("\n");
  });
  const names = commands.map((command) => command.name).join(" ");
  return `# bash completion of flow: source <(flow completion bash)
_flow() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "${names} --help --version" -- "$current"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
}
complete -F _flow flow
`;
}

function zshScript(commands: readonly CliEntry[]): string {
  const described = commands.map((command) => `    ${single(`${command.name}:${command.summary}`)}`);
  const cases = commands.map((command) => {
    const specs = [...[...optionsOf(command), HELP].flatMap(zshOption), ...zshArguments(command, commands)];
    const lines = specs.map((spec) => `          ${single(spec)}`).map(continued);
    return [
      `        ${command.name})`,
      "          _arguments \\",
      ...lines.map((line) => `  ${line}`),
      "          ;;",
    ].join("\n");
  });
  return `#compdef flow
# zsh completion of flow: flow completion zsh > "\${fpath[1]}/_flow"
_flow() {
  local curcontext="$curcontext" state line
  local -a commands
  commands=(
${described.join("\n")}
  )
  _arguments -C '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $line[1] in
${cases.join("\n")}
      esac
      ;;
  esac
}
if [[ $funcstack[1] == _flow ]]; then _flow "$@"; else compdef _flow flow; fi
`;
}

function continued(line: string, index: number, all: readonly string[]): string {
  return index < all.length - 1 ? `${line} \\` : line;
}

function zshOption(option: CliOption): string[] {
  const short = option.short === undefined ? [] : [`-${option.short}[${zshSummary(option)}]`];
  return [...short, zshLongOption(option)];
}

function zshSummary(option: CliOption): string {
  return option.summary.replace(/[[\]\\:]/g, "\\$&");
}

function zshLongOption(option: CliOption): string {
  const repeat = option.many === true ? "*" : "";
  const head = `${repeat}--${option.name}${option.value === undefined ? "" : "="}[${zshSummary(option)}]`;
  if (option.value === undefined) return head;
  if (option.choices !== undefined) return `${head}:value:(${option.choices.join(" ")})`;
  return `${head}:value:${takesFile(option) ? "_files" : ""}`;
}

function zshArguments(command: CliEntry, commands: readonly CliEntry[]): string[] {
  const words = wordsOf(command, commands);
  return [
    ...(words.length === 0 ? [] : [`1:word:(${words.join(" ")})`]),
    ...(takesFiles(command) ? ["*:file:_files"] : []),
  ];
}

function fishScript(commands: readonly CliEntry[]): string {
  const lines = commands.flatMap((command) => {
    const seen = `-n '__fish_seen_subcommand_from ${command.name}'`;
    const own = [`complete -c flow -n __fish_use_subcommand -a ${command.name} -d ${single(command.summary)}`];
    const words = wordsOf(command, commands).join(" ");
    const files = takesFiles(command) ? "" : "-f ";
    if (words !== "" || files !== "") own.push(`complete -c flow ${seen} ${files}-a ${single(words)}`);
    for (const option of [...optionsOf(command), HELP]) own.push(`complete -c flow ${seen} ${fishOption(option)}`);
    return own;
  });
  return `# fish completion of flow: flow completion fish > ~/.config/fish/completions/flow.fish
complete -c flow -n __fish_use_subcommand -f
${lines.join("\n")}
`;
}

function fishOption(option: CliOption): string {
  const short = option.short === undefined ? "" : `-s ${option.short} `;
  const head = `${short}-l ${option.name} -d ${single(option.summary)}`;
  if (option.value === undefined) return head;
  if (option.choices !== undefined) return `${head} -x -a ${single(option.choices.join(" "))}`;
  return `${head} ${takesFile(option) ? "-r -F" : "-x"}`;
}

/** A word for the shell, taken literally. */
function single(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
