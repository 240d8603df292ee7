"""Every rule finds the fault planted for it, on its line, and nothing in what is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.deploy.lint import Finding, lint, lint_texts, rules
from chipwise.errors import InputError

POD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: inference}
spec:
  replicas: 1
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      enableServiceLinks: false
      nodeSelector: {node.kubernetes.io/instance-type: g6e.12xlarge}
      tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
      volumes: [{name: shm, emptyDir: {medium: Memory}}]
      containers:
      - name: engine
        image: vllm/vllm-openai:v0.33.0
        command: [vllm, serve]
        args: [m, --tensor-parallel-size=4]
        ports: [{name: http, containerPort: 8000}]
        resources:
          requests: {cpu: "40", memory: 300Gi, nvidia.com/gpu: "4"}
          limits: {memory: 300Gi, nvidia.com/gpu: "4"}
        startupProbe: {httpGet: {path: /health, port: http}, periodSeconds: 10, failureThreshold: 360}
        livenessProbe: {httpGet: {path: /health, port: http}}
        volumeMounts: [{name: shm, mountPath: /dev/shm}]
"""
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  limits: {nvidia.com/gpu: "8"}
  template:
    metadata: {labels: {team: a}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [g6e.12xlarge]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
"""
CLASS = """
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: gpu}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@v20260715}]
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
"""
GROUP = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: large}
spec:
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      spec: &pod
        nodeSelector: {node.kubernetes.io/instance-type: p5en.48xlarge}
        volumes: [{name: shm, emptyDir: {medium: Memory}}]
        containers:
        - name: engine
          image: vllm/vllm-openai:v0.33.0
          command: [vllm, serve]
          args: [m, --tensor-parallel-size=8, --pipeline-parallel-size=2, --nnodes=2]
          resources:
            limits: {nvidia.com/gpu: "8", vpc.amazonaws.com/efa: "16", hugepages-2Mi: 5120Mi}
          volumeMounts: [{name: shm, mountPath: /dev/shm}]
    workerTemplate:
      spec: *pod
"""
NEURON = """
apiVersion: v1
kind: Pod
metadata: {name: neuron}
spec:
  nodeSelector: {node.kubernetes.io/instance-type: trn2.48xlarge}
  schedulerName: neuron-scheduler
  containers:
  - name: engine
    image: public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.24.0.1.1.0-neuronx-py313-sdk2.32.0-ubuntu24.04
    command: [vllm, serve, m]
    args:
    - --tensor-parallel-size=16
    - --max-num-seqs=8
    - --max-num-batched-tokens=2048
    - '--additional-config={"neuron_config":{"num_batched_tokens_buckets":[2048],"num_seqs_buckets":[8]}}'
    ports: [{name: http, containerPort: 8000}]
    resources: {limits: {aws.amazon.com/neuron: "4"}}
    startupProbe: {httpGet: {path: /health, port: http}, periodSeconds: 15, failureThreshold: 240}
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec:
  spec:
    devices:
      requests:
      - {name: gpu, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: ExactCount, count: 4}}
"""
CLAIMING = (
    POD.replace('requests: {cpu: "40", memory: 300Gi, nvidia.com/gpu: "4"}', 'requests: {cpu: "40"}')
    .replace('limits: {memory: 300Gi, nvidia.com/gpu: "4"}', "claims: [{name: gpu}]")
    .replace("      volumes:", "      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]\n      volumes:")
)
SHARED = """
apiVersion: v1
kind: ConfigMap
metadata: {name: plugin}
data:
  ts: |
    version: v1
    sharing:
      timeSlicing:
        resources: [{name: nvidia.com/gpu, replicas: 4}]
"""
MIG = (
    POD.replace('nvidia.com/gpu: "4"', 'nvidia.com/mig-1g.10gb: "1"')
    .replace("g6e.12xlarge", "p5.48xlarge")
    .replace("=4]", "=1]")
)
P5 = POOL.replace("g6e.12xlarge", "p5.48xlarge")
SCALER = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: chat, namespace: inference}
spec:
  scaleTargetRef: {name: chat}
  triggers:
  - type: prometheus
    metadata: {query: "sum(vllm:num_requests_waiting)", threshold: "5"}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: chat, namespace: inference}
spec: {selector: {app: chat}, ports: [{port: 80}]}
"""
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: chat, namespace: inference}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: chat}}}
"""
EKSCTL = """
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata: {name: c, region: us-west-2}
managedNodeGroups:
- name: block
  instanceType: p5.48xlarge
  efaEnabled: true
  availabilityZones: [us-west-2a]
  capacityReservation: {capacityReservationTarget: {capacityReservationID: cr-0123456789abcdef0}}
  instanceMarketOptions: {marketType: capacity-block}
"""
RUN = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: run, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 1
    numProcPerNode: 8
    image: a/b:1
    resourcesPerNode: {limits: {nvidia.com/gpu: "8"}}
"""
QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team}
spec: {clusterQueue: all}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: []}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: l40s}
spec: {nodeLabels: {node.kubernetes.io/instance-type: g6e.12xlarge}}
"""
AUTO = POOL.replace("karpenter.k8s.aws, kind: EC2NodeClass", "eks.amazonaws.com, kind: NodeClass")

RIGHT = {
    "pod and pool": POD + "---" + POOL + "---" + CLASS + "---" + SERVICE + "---" + SCALER + "---" + BUDGET,
    "group": GROUP,
    "neuron": NEURON,
    "claims": CLAIM + "---" + CLAIMING + "---" + POOL,
    "shared": SHARED,
    "eksctl": EKSCTL,
    "run": RUN + "---" + QUEUES + "---" + POOL,
    "mig": MIG + "---" + P5.replace("spec:\n  limits", "spec:\n  replicas: 1\n  limits"),
}

FAULTS: dict[str, list[tuple[str, str, str]]] = {
    # rule: what is right, what is replaced in it, by what
    "not-yaml": [(POD, "kind: Deployment", "kind: [Deployment")],
    "helm-template": [(POD, "name: chat,", "name: {{ .Values.name }},")],
    "duplicate-key": [(POD, "  replicas: 1", "  replicas: 1\n  replicas: 2")],
    "not-an-object": [(SERVICE, "kind: Service", "kinds: Service"), (SERVICE, SERVICE, "- a\n- b\n")],
    "api-version-gone": [(POOL, "karpenter.sh/v1", "karpenter.sh/v1beta1"), (BUDGET, "policy/v1", "policy/v1beta1")],
    "api-version-old": [(CLAIM, "resource.k8s.io/v1", "resource.k8s.io/v1beta1")],
    "namespace-none": [
        (POD, "namespace: inference", "namespace: None"),
        (POD, "namespace: inference", "namespace: null"),
        (SERVICE, "namespace: inference", 'namespace: ""'),
    ],
    "name-invalid": [(SERVICE, "name: chat", "name: Chat_1"), (POD, "namespace: inference", "namespace: In_1")],
    "duplicate-object": [(SERVICE, SERVICE, SERVICE + "---" + SERVICE)],
    "secret-in-plain-text": [
        (POD, "        ports:", "        env: [{name: HF_TOKEN, value: abc}]\n        ports:"),
        (POD, "args: [m,", "args: [hf_abcdefghijklmnopqrstuvwxyz,"),
    ],
    "stand-in": [(POD, "vllm/vllm-openai:v0.33.0", "IMAGE")],
    "service-named-vllm": [(SERVICE, "name: chat", "name: vllm")],
    "selector-mismatch": [
        (POD + "---" + SERVICE, "selector: {app: chat}", "selector: {app: chatt}"),
        (POD, "matchLabels: {app: chat}", "matchLabels: {app: other}"),
        (POD + "---" + BUDGET, "1, selector: {matchLabels: {app: chat}}", "1, selector: {matchLabels: {app: c}}"),
    ],
    "reference-missing": [
        (
            POD + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: inference}\n",
            "volumes: [",
            "volumes: [{name: c, configMap: {name: settings}}, ",
        )
    ],
    "scale-target-missing": [(POD + "---" + SCALER, "scaleTargetRef: {name: chat}", "scaleTargetRef: {name: chatt}")],
    "scale-on-cpu": [(POD + "---" + SCALER, "type: prometheus", "type: cpu")],
    "metric-gone": [(SCALER, "num_requests_waiting", "gpu_cache_usage_perc")],
    "budget-blocks-drain": [(BUDGET, "maxUnavailable: 1", "maxUnavailable: 0")],
    "device-request-not-limit": [
        (POD, 'limits: {memory: 300Gi, nvidia.com/gpu: "4"}', "limits: {memory: 300Gi}"),
        (POD, 'limits: {memory: 300Gi, nvidia.com/gpu: "4"}', 'limits: {memory: 300Gi, nvidia.com/gpu: "2"}'),
    ],
    "request-above-allocatable": [
        (POD, 'cpu: "40"', 'cpu: "64"'),
        (POD, "memory: 300Gi", "memory: 390Gi"),
        (POD.replace("=4]", "=8]"), 'nvidia.com/gpu: "4"', 'nvidia.com/gpu: "8"'),
        (NEURON, 'neuron: "4"', 'neuron: "32"'),
    ],
    "efa-count": [
        (GROUP, 'efa: "16"', 'efa: "32"'),
        (POD, "{memory: 300Gi,", '{memory: 300Gi, vpc.amazonaws.com/efa: "4",'),
    ],
    "efa-without-huge-pages": [(GROUP, ", hugepages-2Mi: 5120Mi", "")],
    "efa-on-part-of-group": [
        (
            GROUP,
            "spec: *pod",
            'spec: {containers: [{name: engine, image: a/b:1, resources: {limits: {nvidia.com/gpu: "8"}}}]}',
        )
    ],
    "nodes-without-efa": [(GROUP, ', vpc.amazonaws.com/efa: "16", hugepages-2Mi: 5120Mi', "")],
    "devices-against-split": [
        (POD, "--tensor-parallel-size=4", "--tensor-parallel-size=8"),
        (POD, "--tensor-parallel-size=4", "-tp, '2'"),
        (GROUP, "--pipeline-parallel-size=2", "--pipeline-parallel-size=4"),
        (NEURON, "--tensor-parallel-size=16", "--tensor-parallel-size=32"),
        (CLAIM + "---" + CLAIMING, "count: 4", "count: 2"),
    ],
    "processes-against-devices": [(RUN, "numProcPerNode: 8", "numProcPerNode: 4")],
    "group-size": [(GROUP, "size: 2", "size: 0"), (GROUP, "size: 2", "size: 3")],
    "image-against-chip": [
        (
            NEURON,
            "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.24.0.1.1.0-neuronx-py313-sdk2.32.0-ubuntu24.04",
            "vllm/vllm-openai:v0.33.0",
        ),
        (POD, "vllm/vllm-openai:v0.33.0", "public.ecr.aws/neuron/x:1"),
    ],
    "neuron-flag-gone": [
        (NEURON, "- --max-num-seqs=8", "- --max-num-seqs=8\n    - --device=neuron"),
        (NEURON, "- --max-num-seqs=8", "- --max-num-seqs=8\n    - --quantization=fp8"),
    ],
    "neuron-buckets": [(NEURON, '"num_seqs_buckets":[8]', '"num_seqs_buckets":[4]')],
    "neuron-chip-unsupported": [(NEURON, "trn2.48xlarge", "inf2.48xlarge")],
    "neuron-part-without-scheduler": [(NEURON, "  schedulerName: neuron-scheduler\n", "")],
    "no-startup-probe": [
        (
            POD.replace("        livenessProbe: {httpGet: {path: /health, port: http}}\n", ""),
            "        startupProbe: {httpGet: {path: /health, port: http}, periodSeconds: 10, failureThreshold: 360}\n",
            "",
        )
    ],
    "startup-probe-too-short": [
        (POD, "failureThreshold: 360", "failureThreshold: 6"),
        (
            POD,
            "        startupProbe: {httpGet: {path: /health, port: http}, periodSeconds: 10, failureThreshold: 360}\n",
            "",
        ),
        (NEURON, "failureThreshold: 240", "failureThreshold: 40"),
    ],
    "compile-memory": [(NEURON, "trn2.48xlarge", "trn1.2xlarge")],
    "no-shared-memory": [(POD, "        volumeMounts: [{name: shm, mountPath: /dev/shm}]\n", "")],
    "pool-never-launches": [
        (POOL, 'nvidia.com/gpu: "8"', 'nvidia.com/gpu: "2"'),
        (
            POOL,
            "      - {key: karpenter.sh/capacity-type",
            (
                "      - {key: karpenter.k8s.aws/instance-gpu-count, operator: In, values: ['8']}\n"
                "      - {key: karpenter.sh/capacity-type"
            ),
        ),
    ],
    "gpu-by-accelerator-label": [
        (
            POOL,
            "      - {key: karpenter.sh/capacity-type",
            (
                "      - {key: karpenter.k8s.aws/instance-accelerator-manufacturer, operator: In, values: [nvidia]}\n"
                "      - {key: karpenter.sh/capacity-type"
            ),
        ),
        (
            POD,
            "{node.kubernetes.io/instance-type: g6e.12xlarge}",
            "{eks.amazonaws.com/instance-accelerator-manufacturer: nvidia}",
        ),
    ],
    "label-domain": [
        (
            AUTO,
            "node.kubernetes.io/instance-type, operator: In, values: [g6e.12xlarge]",
            "karpenter.k8s.aws/instance-family, operator: In, values: [g6e]",
        ),
        (
            POOL,
            "node.kubernetes.io/instance-type, operator: In, values: [g6e.12xlarge]",
            "eks.amazonaws.com/instance-family, operator: In, values: [g6e]",
        ),
    ],
    "nodepool-label": [(POOL, "labels: {team: a}", "labels: {karpenter.sh/nodepool: gpu}")],
    "label-no-pool-provides": [
        (POD + "---" + POOL, "type: g6e.12xlarge}", "type: g6e.48xlarge}"),
        (POD + "---" + POOL, "nodeSelector: {", "nodeSelector: {team: b, "),
        (POD + "---" + POOL, "nodeSelector: {", "nodeSelector: {accelerator: nvidia, "),
    ],
    "taint-without-toleration": [
        (POD + "---" + POOL, "      tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]\n", ""),
        (POD + "---" + POOL, "tolerations: [{key: nvidia.com/gpu,", "tolerations: [{key: gpu,"),
    ],
    "pool-too-large": [
        (
            (POD + "---" + POOL).replace('nvidia.com/gpu: "4"', 'nvidia.com/gpu: "1"').replace("=4]", "=1]"),
            "      nodeSelector: {node.kubernetes.io/instance-type: g6e.12xlarge}\n",
            "",
        )
    ],
    "node-class-missing": [(POOL + "---" + CLASS, "EC2NodeClass, name: gpu", "EC2NodeClass, name: gpus")],
    "ami-unpinned": [(CLASS, "al2023@v20260715", "al2023@latest")],
    "reserved-without-selector": [(POOL + "---" + CLASS, "values: [on-demand]", "values: [reserved]")],
    "reserved-with-interfaces": [
        (
            CLASS,
            "  role: nodes",
            (
                "  role: nodes\n  capacityReservationSelectorTerms: [{tags: {a: b}}]\n"
                "  networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}]"
            ),
        )
    ],
    "public-address-with-efa": [
        (CLASS + "---" + GROUP, "  role: nodes", "  role: nodes\n  associatePublicIPAddress: true")
    ],
    "efa-zones": [(EKSCTL, "[us-west-2a]", "[us-west-2a, us-west-2b]")],
    "capacity-block-without-reservation": [
        (
            EKSCTL,
            "  capacityReservation: {capacityReservationTarget: {capacityReservationID: cr-0123456789abcdef0}}\n",
            "",
        )
    ],
    "instance-unknown": [(POOL, "g6e.12xlarge", "g6e.13xlarge"), (EKSCTL, "p5.48xlarge", "p5.48xl")],
    "allocation-mode-case": [
        (CLAIM, "allocationMode: ExactCount", "allocationMode: all"),
        (CLAIM, "allocationMode: ExactCount", "allocationMode: exactcount"),
        (CLAIM, "exactly: {", "firstAvailable: [{name: a, "),
    ],
    "claim-missing": [(CLAIM + "---" + CLAIMING, "claims: [{name: gpu}]", "claims: [{name: gpus}]")],
    "claim-and-plugin": [
        (
            CLAIM + "---" + CLAIMING,
            'requests: {cpu: "40"}',
            'requests: {cpu: "40"}\n          limits: {nvidia.com/gpu: "4"}',
        )
    ],
    "device-class-unknown": [(CLAIM, "gpu.nvidia.com", "nvidia.com")],
    "dra-not-there": [
        (
            CLAIM.replace("gpu.nvidia.com", "neuron.aws.com") + "---" + CLAIMING + "---" + POOL,
            "team: a",
            "team: b",
        )
    ],
    "time-slicing-without-resources": [
        (SHARED, "resources: [{name: nvidia.com/gpu, replicas: 4}]", "replicas: 4"),
        (SHARED, "replicas: 4", "count: 4"),
    ],
    "mps-with-mig": [(SHARED, "      timeSlicing:", "      mps:")],
    "label-is-output": [(POOL, "team: a", 'nvidia.com/gpu.replicas: "4"')],
    "mig-profile-unknown": [(MIG, "mig-1g.10gb", "mig-1g.11gb"), (MIG, "p5.48xlarge", "g6e.12xlarge")],
    "mig-on-dynamic-pool": [(MIG + "---" + P5, "team: a", "team: b")],
    "sharing-on-auto-mode": [(AUTO, "team: a", "nvidia.com/mig.config: all-1g.10gb")],
    "queue-missing": [(RUN + "---" + QUEUES, "queue-name: team", "queue-name: teams")],
    "queue-covers-not": [(RUN + "---" + QUEUES, "limits: {", 'limits: {vpc.amazonaws.com/efa: "32", ')],
    "topology-without-nodes": [(QUEUES + "---" + POOL, "spec: {nodeLabels", "spec: {topologyName: net, nodeLabels")],
}
CASES = [(rule, *case) for rule, cases in FAULTS.items() for case in cases]


def found(text: str) -> dict[str, Finding]:
    return {one.rule: one for one in lint_texts({"a.yaml": text})}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name: str) -> None:
    assert found(RIGHT[name]) == {}


@pytest.mark.parametrize(("rule", "right", "old", "new"), CASES)
def test_a_planted_fault_is_found(rule: str, right: str, old: str, new: str) -> None:
    assert old in right
    text = right.replace(old, new)
    if rule == "mps-with-mig":
        text = text.replace("version: v1\n", "version: v1\n    flags: {migStrategy: mixed}\n")
    if rule == "allocation-mode-case" and "firstAvailable" in new:
        text = text.replace("count: 4}}", "count: 4}]}").replace("ExactCount", "exact")
    fault = found(text).get(rule)
    assert fault is not None, [*found(text)]
    assert fault.severity == rules()[rule].severity
    assert 1 <= fault.line <= len(text.splitlines())
    assert len(fault.why) > 10
    assert fault.fix


def test_every_rule_has_its_fault() -> None:
    assert set(FAULTS) == set(rules())


def test_a_finding_names_the_line() -> None:
    text = RIGHT["pod and pool"].replace("memory: 300Gi", "memory: 390Gi")
    (fault,) = lint_texts({"serving/pod.yaml": text})
    assert fault.file == "serving/pod.yaml"
    assert "390Gi" in text.splitlines()[fault.line - 1]


def test_the_hand_checked_examples_hold_no_error(shared: Path) -> None:
    folder = shared / "ecosystem" / "examples"
    for target in (folder, *sorted(folder.glob("*.yaml"))):
        assert [one for one in lint(target) if one.severity == "error"] == []


def test_aliases_that_expand_without_end_are_refused() -> None:
    layers = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12))
    (fault,) = lint_texts({"a.yaml": f"l0: &l0 [a]\n{layers}\n"})
    assert fault.rule == "not-yaml"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "kind",
                        "apiVersion",
                        "metadata",
                        "spec",
                        "containers",
                        "name",
                        "resources",
                        "limits",
                        "requests",
                        "template",
                        "requirements",
                        "values",
                        "key",
                        "selector",
                        "matchLabels",
                        "args",
                        "trainer",
                        "devices",
                        "exactly",
                        "nvidia.com/gpu",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=40,
    ),
    st.sampled_from(
        [
            "Deployment",
            "NodePool",
            "ResourceClaimTemplate",
            "TrainJob",
            "ClusterConfig",
            "LeaderWorkerSet",
            "ScaledObject",
            "ConfigMap",
            "EC2NodeClass",
        ]
    ),
)
def test_any_shape_is_read_without_falling_over(value: object, kind: str) -> None:
    document = {"apiVersion": "karpenter.sh/v1", "kind": kind, "metadata": {"name": "a"}, "spec": value, "data": value}
    lint_texts({"a.json": json.dumps(document), "b.json": json.dumps(value)})


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not there"):
        lint(tmp_path / "none")
