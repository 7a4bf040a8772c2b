import { join } from "node:path";
import ts from "typescript";
import { packagePath } from "../../src/platform/system/package-file.ts";
import type { ManifestKinds } from "./manifest-kinds.ts";
import type { Manifest } from "./manifests.ts";

const FOLDER = packagePath("test/deploy");
const OPTIONS: ts.CompilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  types: [],
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
};

/**
 * What Kubernetes would refuse: unknown fields, missing ones, values of another type. The types in `manifest-kinds.ts` are
 * made of the OpenAPI document that the API server validates with, so the compiler is the validator: each manifest is
 * checked as a literal of its kind's type, which allows no field that the type does not have.
 */
export function schemaProblems(manifests: readonly Manifest[]): string[] {
  const names = manifests.map((_, index) => join(FOLDER, `manifest-${index}.ts`));
  const texts = new Map(manifests.map((manifest, index) => [names[index] ?? "", literal(manifest)]));
  const host = ts.createCompilerHost(OPTIONS);
  const { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (name) => texts.has(name) || fileExists(name);
  host.readFile = (name) => texts.get(name) ?? readFile(name);
  host.getSourceFile = (name, language, ...rest) => {
    const text = texts.get(name);
    return text === undefined ? getSourceFile(name, language, ...rest) : ts.createSourceFile(name, text, language);
  };
  const program = ts.createProgram(names, OPTIONS, host);
  return manifests.flatMap((manifest, index) => {
    const file = program.getSourceFile(names[index] ?? "");
    return ts.getPreEmitDiagnostics(program, file).map(({ messageText, start = 0 }) => {
      const line = file?.text.slice(start).split("\n")[0] ?? "";
      return `${manifest.place}: ${ts.flattenDiagnosticMessageText(messageText, " ")} (at ${line.trim()})`;
    });
  });
}

function literal({ document }: Manifest): string {
  // Whether it is one, the compiler says.
  const kind = `${document.apiVersion} ${document.kind}` as keyof ManifestKinds;
  const value = JSON.stringify(document, undefined, 1);
  return `import type { ManifestKinds } from "./manifest-kinds.ts";\nexport const m: ManifestKinds[${JSON.stringify(kind)}] = ${value};\n`;
}
