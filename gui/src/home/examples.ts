import payment from "../../../playbooks/examples/await_payment.yaml?raw";
import hello from "../../../playbooks/examples/hello.yaml?raw";
import loops from "../../../playbooks/examples/nested_loops.yaml?raw";
import part from "../../../playbooks/examples/parts/region_report.yaml?raw";

/** A playbook that an empty server offers. They need nothing but flow, and each shows something else. */
export interface Example {
  path: string;
  title: string;
  /** What it does, and what to look at. */
  about: string;
  /** Its documents, those first that others call; the last one is run. */
  documents: readonly string[];
  /** What does the same in a terminal, in a checkout of flow. */
  commands: readonly string[];
}

/** The examples of the first visit. */
export const EXAMPLES: readonly Example[] = [
  {
    path: "examples/hello",
    title: "Hello",
    about: "Three steps that greet a person: inputs, a condition, and a result. It ends within a moment.",
    documents: [hello],
    commands: commandsOf("hello"),
  },
  {
    path: "examples/nested_loops",
    title: "Loops and a called playbook",
    about: "Sums up the takings of every shop: a parallel loop that calls another playbook for each region.",
    documents: [part, loops],
    commands: ["flow register playbooks/examples/parts/region_report.yaml", ...commandsOf("nested_loops")],
  },
  {
    path: "examples/await_payment",
    title: "A run that waits",
    about:
      "Waits three days for the payment of an order, and holds no worker meanwhile. Its page shows what it waits for.",
    documents: [payment],
    commands: [...commandsOf("await_payment"), `flow signal <id> payment --key A-17 --data '{"amount": 120}'`],
  },
];

function commandsOf(name: string): string[] {
  return [`flow register playbooks/examples/${name}.yaml`, `flow run examples/${name}`];
}

/** The workflow of a document, without what stands before it. */
export function workflowOf(document: string): string {
  return document.slice(Math.max(0, document.indexOf("workflow:")));
}
