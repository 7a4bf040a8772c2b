import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { flow, folderWith, playbookText } from "../support/service/cli-process.ts";
import { runFlow } from "./in-process.ts";

const GOOD = playbookText("good", "  - step: start\n    tool: {kind: noop}\n");

/** Command lines that are wrong, and what must be said about each. */
const CASES: readonly [what: string, args: readonly string[], said: RegExp][] = [
  ["no command", [], /^flow runs playbooks/],
  ["an unknown command", ["rnu", "good.yaml"], /no command 'rnu'.*'flow run'/],
  ["an unknown option before the command", ["--verion"], /Unknown option --verion\. Did you mean --version\?/],
  ["an unknown option", ["run", "good.yaml", "--taget", "x"], /Unknown option --taget, did you mean --target\?/],
  ["an unknown short option", ["run", "good.yaml", "-x"], /Unknown option -x/],
  ["an option without its value", ["run", "good.yaml", "--target"], /--target needs a value: --target STEP/],
  ["an option in place of a value", ["run", "good.yaml", "--target", "--json"], /--target needs a value/],
  ["a switch with a value", ["run", "good.yaml", "--json=yes"], /--json is a switch/],
  ["an option given twice", ["run", "good.yaml", "--target=a", "--target=b"], /--target was given twice/],
  ["no playbook", ["run"], /'flow run' needs <playbook>/],
  ["two playbooks", ["run", "good.yaml", "other.yaml"], /'flow run' does not take 'other\.yaml'/],
  ["a missing file", ["run", "goood.yaml"], /There is no file goood\.yaml\. Did you mean 'good\.yaml'\?/],
  ["a missing catalog path", ["run", "demo/none"], /There is no playbook 'demo\/none'/],
  ["a folder", ["run", "folder"], /folder is a folder\. Name one playbook/],
  ["text that is no YAML", ["run", "broken.yaml"], /^broken\.yaml:\d+:\d+ {2}\S+ {2}/m],
  ["a document of another kind", ["run", "other.yaml"], /^other\.yaml:\d+:\d+ {2}\S+ {2}/m],
  ["--set without a value", ["run", "good.yaml", "--set", "day"], /--set needs KEY=VALUE.*got 'day'/],
  ["--set without a key", ["run", "good.yaml", "--set", "=1"], /--set needs KEY=VALUE/],
  ["--set with an empty part", ["run", "good.yaml", "--set", "a..b=1"], /--set needs KEY=VALUE/],
  ["--set into what is no map", ["run", "good.yaml", "--set", "a=1", "--set", "a.b=2"], /'a' is a number already/],
  ["a workload that is no JSON", ["run", "good.yaml", "--workload", "{day"], /--workload is not JSON: /],
  ["a workload that is no object", ["run", "good.yaml", "--workload", "[1]"], /must be one JSON object.*a list/],
  [
    "a workload file that is missing",
    ["run", "good.yaml", "--workload", "@none.json"],
    /Cannot read the file of --workload @none/,
  ],
  ["an unknown target", ["run", "good.yaml", "--target", "strat"], /no step 'strat'\. Did you mean 'start'\?/],
  ["an unknown runtime", ["run", "good.yaml", "--runtime", "lokal"], /must be one of local, server, auto.*'local'/],
  ["a server for a local run", ["run", "good.yaml", "--runtime", "local", "--detach"], /exclude each other/],
  ["a credentials file that is missing", ["run", "good.yaml", "--credentials", "none.json"], /Cannot read none\.json/],
  [
    "an event log that cannot be made",
    ["run", "good.yaml", "--record", "no/where"],
    /Cannot write the event log no\/where/,
  ],
  ["an empty playbook", ["run", ""], /<playbook> is empty/],
  ["an empty file among others", ["validate", "good.yaml", ""], /<file>… is empty/],
  ["an empty value", ["run", "good.yaml", "--target", ""], /--target needs a value: --target STEP/],
  ["an empty value with its option", ["run", "good.yaml", "--record="], /--record needs a value: --record FILE/],
  ["an event log over the playbook", ["run", "good.yaml", "--record", "./good.yaml"], /would replace a file that this/],
  [
    "an event log over the inputs",
    ["run", "good.yaml", "--workload", "@in.json", "--record", "in.json"],
    /would replace a file that this run reads/,
  ],
  ["a folder to plan", ["plan", "folder"], /folder is a folder\. Name one playbook/],
  ["a missing file to plan", ["plan", "goood.yaml"], /There is no file goood\.yaml\. Did you mean 'good\.yaml'\?/],
  [
    "a missing credentials file of a plan",
    ["plan", "good.yaml", "--credentials", "none.json"],
    /Cannot read none\.json/,
  ],
  ["a playbook in place of its tests", ["test", "good.yaml"], /good\.yaml is not a test.*are in good\.test\.yaml/],
  ["a file to validate that is missing", ["validate", "none.yaml"], /Cannot read none\.yaml/],
  ["a folder to validate without playbooks", ["validate", "folder"], /no playbook .* in or below folder/],
  [
    "an open gateway beyond this machine",
    ["serve", "--role", "gateway", "--host", "0.0.0.0"],
    /A gateway beyond this machine needs FLOW_SERVER_TOKEN/,
  ],
  ["an unknown role", ["serve", "--role", "sever"], /role must be one of server, .*did you mean 'server'/],
  ["a port that is none", ["serve", "--port", "http"], /--port must be a port from 0 to 65535, got 'http'/],
  [
    "an open server beyond this machine",
    ["serve", "--host", "0.0.0.0"],
    /Refused to listen on 0\.0\.0\.0 without tokens/,
  ],
  ["a file to register that is missing", ["register", "none.yaml"], /Cannot read none\.yaml/],
  ["a folder to register without documents", ["register", "folder"], /no playbook .* in or below folder/],
  ["two servers", ["register", "good.yaml", "--server", "http://h", "--context", "a"], /give only one/],
  ["a server that is no address", ["catalog", "--server", "h:1"], /--server must be an http or https address/],
  ["a context that does not exist", ["catalog", "--context", "prod"], /There is no context 'prod'/],
  ["an entry without its path", ["catalog", "get"], /'flow catalog get' needs <path>/],
  ["a list of one path", ["catalog", "list", "a"], /did you mean --prefix a/],
  ["a context without a name", ["context", "use"], /'flow context use' needs <name>: name of the context/],
  ["a context without an address", ["context", "add", "prod"], /needs the address: --server URL/],
  ["a context to use that is missing", ["context", "use", "prod"], /There is no context 'prod'/],
  ["no command of a set", ["context"], /'flow context' needs a command: add, use, list, remove/],
  ["an unknown command of a set", ["catalog", "lst"], /no command 'catalog lst'\. Did you mean 'flow catalog list'\?/],
  [
    "an option of another command of the set",
    ["catalog", "get", "a", "--prefix", "b"],
    /'flow catalog get' does not take --prefix; it goes with 'flow catalog list'/,
  ],
  ["an option of another command before its name", ["catalog", "--prefix", "b", "get", "a"], /does not take --prefix/],
  ["an unknown shell", ["completion", "tcsh"], /must be one of bash, zsh, fish/],
  ["an unknown command to explain", ["help", "rnu"], /no command 'rnu'/],
];

for (const [what, args, said] of CASES) {
  test(`${what} is reported in one message, with exit code 2 and no stack trace`, async (t) => {
    const folder = await folderWith(t, {
      "good.yaml": GOOD,
      "good.test.yaml": "tests: [{name: runs}]\n",
      "in.json": "{}",
      "broken.yaml": "workflow: [\n",
      "other.yaml": GOOD.replace("Playbook", "Deployment"),
    });
    await mkdir(join(folder, "folder"));
    const { code, stdout, stderr } = await runFlow(folder, args, { HOME: folder });
    assert.equal(code, 2, stderr);
    assert.match(stderr, said);
    assert.equal(stdout, "");
    assert.doesNotMatch(stderr, /^\s+at .*:\d+:\d+\)?$/m);
  });
}

test("a setting that cannot be used is named", async (t) => {
  const folder = await folderWith(t, { "good.yaml": GOOD });
  const { code, stderr } = await runFlow(folder, ["run", "good.yaml"], { FLOW_LOCAL_CAPACITY: "many" });
  assert.equal(code, 2);
  assert.match(stderr, /^flow: FLOW_LOCAL_CAPACITY must be/);
});

test("what a document puts into names cannot reach the terminal as escape sequences", async (t) => {
  const folder = await folderWith(t, {});
  const text = playbookText(
    "evil",
    '  - step: "a\\e]0;title\\a\\e[2Jb"\n    tool: {kind: noop}\n    next: {arcs: [{step: c}]}\n',
  );
  await writeFile(join(folder, "evil.yaml"), text);
  const { stderr } = await runFlow(folder, ["run", "evil.yaml"]);
  assert.match(stderr, /evil\.yaml:/);
  assert.doesNotMatch(stderr, /[\u001b\u0007]/);
});

test("a fault of the program is one line and exit code 1; FLOW_DEBUG=1 shows where it happened", async (t) => {
  const slow = playbookText("slow", '  - step: wait\n    tool: {kind: shell, cmd: "exec sleep 5"}\n');
  const folder = await folderWith(t, { "slow.yaml": slow });
  // Throws where no promise carries it, as soon as the program listens for such errors.
  const code = "setInterval(()=>{if(process.listenerCount(`uncaughtException`)>0)throw(new(Error)(`boom`))},5)";
  const fault = { NODE_OPTIONS: `--import=data:text/javascript,${code}` };
  const plain = await flow(folder, ["run", "slow.yaml"], fault);
  assert.equal(plain.code, 1, plain.stderr);
  assert.match(plain.stderr, /^flow: unexpected error: boom$/m);
  assert.doesNotMatch(plain.stderr, /^\s+at /m);
  const debug = await flow(folder, ["run", "slow.yaml"], { ...fault, FLOW_DEBUG: "1" });
  assert.match(debug.stderr, /^\s+at /m);
});
