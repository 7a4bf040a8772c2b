import type { Deployment, StatefulSet } from "kubernetes-types/apps/v1.js";
import type { ConfigMap, Namespace, PersistentVolumeClaim, Secret, Service } from "kubernetes-types/core/v1.js";
import type { NetworkPolicy } from "kubernetes-types/networking/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";

/**
 * What may stand in `deploy/kubernetes/`: apiVersion and kind, to the type that is made of Kubernetes' own OpenAPI document.
 * That document leaves three fields optional without which the API server takes nothing.
 */
export interface ManifestKinds {
  "v1 Namespace": Manifest<Namespace>;
  "v1 ConfigMap": Manifest<ConfigMap>;
  "v1 Secret": Manifest<Secret>;
  "v1 Service": Manifest<Service>;
  "v1 PersistentVolumeClaim": Manifest<PersistentVolumeClaim>;
  "apps/v1 Deployment": Manifest<Deployment>;
  "apps/v1 StatefulSet": Manifest<StatefulSet>;
  "networking.k8s.io/v1 NetworkPolicy": Manifest<NetworkPolicy>;
  "policy/v1 PodDisruptionBudget": Manifest<PodDisruptionBudget>;
}

type Manifest<T extends { apiVersion?: string; kind?: string; metadata?: object }> = T &
  Required<Pick<T, "apiVersion" | "kind" | "metadata">>;
