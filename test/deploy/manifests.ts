import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { packagePath } from "../../src/platform/system/package-file.ts";

/** A document of `deploy/kubernetes/`. */
export interface Manifest {
  /** Its file, from `deploy/kubernetes/`. */
  place: string;
  document: ManifestDocument;
}

/** What these tests look at; whether the rest is right, the schemas say. */
export interface ManifestDocument {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  stringData?: Record<string, string>;
  spec?: {
    replicas?: number;
    selector?: unknown;
    ingress?: { ports: { port: string }[]; from?: { podSelector: { matchLabels: Record<string, string> } }[] }[];
    podSelector?: { matchLabels: Record<string, string> };
    ports?: { port: number; targetPort?: number | string }[];
    template?: { metadata: { labels: Record<string, string> }; spec: PodSpec };
  };
}

/** A pod's part. */
export interface PodSpec {
  enableServiceLinks?: boolean;
  automountServiceAccountToken?: boolean;
  terminationGracePeriodSeconds?: number;
  securityContext?: { runAsNonRoot?: boolean };
  containers: Container[];
}

/** One container. */
export interface Container {
  name: string;
  args?: string[];
  env?: {
    name: string;
    value?: string;
    valueFrom?: { secretKeyRef?: { name: string; key: string; optional?: boolean } };
  }[];
  envFrom?: { configMapRef?: { name: string } }[];
  ports?: { name: string; containerPort: number }[];
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  securityContext?: { allowPrivilegeEscalation?: boolean; readOnlyRootFilesystem?: boolean; capabilities?: unknown };
}

interface Probe {
  httpGet?: { path: string; port: number | string };
}

const FOLDER = packagePath("deploy/kubernetes");

/** The YAML files in a folder of `deploy/kubernetes/`, by name. */
export function manifestFiles(folder: "base" | "trial"): string[] {
  return readdirSync(join(FOLDER, folder))
    .filter((name) => name.endsWith(".yaml"))
    .sort();
}

/** Every document of these files but the kustomizations. */
export function readManifests(): Manifest[] {
  return (["base", "trial"] as const).flatMap((folder) =>
    manifestFiles(folder)
      .filter((name) => name !== "kustomization.yaml")
      .flatMap((name) => documents(`${folder}/${name}`)),
  );
}

/** A kustomization as data. */
export function readKustomization(folder: "base" | "trial"): { resources: string[] } & Record<string, unknown> {
  return documents(`${folder}/kustomization.yaml`)[0]?.document as unknown as { resources: string[] };
}

function documents(place: string): Manifest[] {
  return parseAllDocuments(readFileSync(join(FOLDER, place), "utf8"), { merge: true }).map((parsed) => {
    const problem = [...parsed.errors, ...parsed.warnings][0];
    if (problem !== undefined) throw problem;
    return { place, document: parsed.toJS() as ManifestDocument };
  });
}
