"""ModelDeployment -> a KServe LLMInferenceService (serving.kserve.io/v1alpha2, read at KServe v0.20.0).

Router, image and the rest come from KServe's own defaults, which the platform team sets per cluster.
"""

from composition_function import fleet, naming, objects
from composition_function.contract import Composed, Manifest, Outcome, Request, SpecError, at, describe, text, whole
from composition_function.needs import suspended
from composition_function.suspension import Stopping
from composition_function.workloads import Built, Workload, all_ready, compose

MAIN = "llminferenceservice"

# KServe's own Ready, for the generation that was applied.
READY_WHEN = (
    "has(object.status) && has(object.status.conditions) && "
    'object.status.conditions.exists(c, c.type == "Ready" && c.status == "True") && '
    "(!has(object.status.observedGeneration) || object.status.observedGeneration >= object.metadata.generation)"
)

# KServe deletes the Deployment, its Service and the route of a service with this annotation; its ``status.url`` stays
# (pkg/controller/v1alpha2/llmisvc/workload_single_node.go, workload_status.go, router.go, v0.20.0, read 2026-12-01).
STOP = "serving.kserve.io/stop"
# An annotation doesn't change the generation, so it is the reason that tells a stop that was carried out.
STOPPED_WHEN = (
    "has(object.status) && has(object.status.conditions) && !has(object.status.workloads) && "
    'object.status.conditions.exists(c, c.type == "WorkloadsReady" && c.status == "False" && '
    'has(c.reason) && c.reason == "Stopped")'
)


def compose_model(request: Request) -> Outcome:
    """A ModelDeployment: placed by accelerators, served by KServe. SpecError for a class unknown to the fleet."""
    if not at(request.composite, "metadata", "deletionTimestamp") and not suspended(request.composite):
        _accelerator_class(request)
    return compose(request, WORKLOAD)


def _build(request: Request, target: objects.Target) -> Built:
    composite = request.composite
    service = llm_inference_service(composite, _accelerator_class(request))
    resources = {
        MAIN: Composed(objects.wrap(composite, target, "llm", service, READY_WHEN)),
        "namespace": Composed(objects.namespace(composite, target, "llm-namespace")),
    }
    observed = request.observed.get(MAIN)
    waiting_for = objects.applied(observed, resources[MAIN].manifest) or _not_ready(objects.workload(observed))
    all_ready(resources, waiting_for)
    return Built(resources, waiting_for, _observe(request))


def _accelerator_class(request: Request) -> Manifest:
    name = text(request.composite, "spec", "accelerator", "class")
    classes = request.required.get(fleet.ACCELERATOR_CLASSES.name, ())
    for item in classes:
        if at(item, "metadata", "name") == name:
            return item
    known = ", ".join(sorted(str(at(item, "metadata", "name")) for item in classes)) or "none"
    raise SpecError(
        f"{describe(request.composite)}: /spec/accelerator/class is {name!r}, and the fleet has no AcceleratorClass of "
        f"that name (it has: {known})"
    )


def llm_inference_service(composite: Manifest, accelerator: Manifest) -> Manifest:
    """The LLMInferenceService of a ModelDeployment on hardware of one AcceleratorClass."""
    source = text(composite, "spec", "model", "source")
    count = whole(composite, "spec", "accelerator", "count", minimum=1)
    spec: Manifest = {
        "model": {
            # KServe fetches the weights itself and takes the revision after a colon; vLLM then reads a folder.
            "uri": f"{source}:{text(composite, 'spec', 'model', 'revision')}",
            "name": model_name(composite),
        },
        "parallelism": {"tensor": count},
        "router": {"route": {}, "gateway": {}, "scheduler": {}},
        "template": _template(composite, accelerator, count),
        **_scale(composite),
    }
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        # Said although it is the default: provider-kubernetes merges, and would leave a "true" in place.
        "metadata": objects.metadata(composite, naming.short(composite["metadata"]["name"]), {STOP: "false"}),
        "spec": spec,
    }


def model_name(composite: Manifest) -> str:
    """What clients send as ``model``: the repository's OWNER/NAME."""
    return text(composite, "spec", "model", "source").removeprefix("hf://")


def _scale(composite: Manifest) -> Manifest:
    """A fixed number of replicas, or KServe's autoscaler within exactly the claim's limits."""
    least = whole(composite, "spec", "replicas", "min", minimum=1)
    most = whole(composite, "spec", "replicas", "max", minimum=1)
    if least == most:
        return {"replicas": most}
    return {"scaling": {"minReplicas": least, "maxReplicas": most, "wva": {"hpa": {}}}}


def _template(composite: Manifest, accelerator: Manifest, count: int) -> Manifest:
    """The pod. KServe's image gives its arguments to a shell: each value here is a number or bound by the schema to
    characters that mean nothing to one."""
    resource_name = text(accelerator, "spec", "resourceName")
    args = [
        f"--max-model-len={whole(composite, 'spec', 'contextLength', minimum=1)}",
        f"--max-num-seqs={whole(composite, 'spec', 'concurrency', minimum=1)}",
    ]
    quantization = text(composite, "spec", "model", "quantization")
    if quantization != "none":
        args.append(f"--quantization={quantization}")
    devices = {resource_name: str(count)}
    template: Manifest = {
        "containers": [{"name": "main", "args": args, "resources": {"limits": devices, "requests": dict(devices)}}],
        # Accelerator nodes are commonly tainted with their resource's name, to keep other pods away.
        "tolerations": [{"key": resource_name, "operator": "Exists", "effect": "NoSchedule"}],
    }
    node_selector = at(accelerator, "spec", "nodeSelector")
    return template | ({"nodeSelector": node_selector} if node_selector else {})


def _observe(request: Request) -> Manifest:
    """``replicas``, always there once composed, and ``endpoint`` once the model server has an address."""
    observed = objects.workload(request.observed.get(MAIN))
    least = whole(request.composite, "spec", "replicas", "min", minimum=1)
    # KServe may leave the count out; Ready then says that as many as must run do.
    is_ready = at(objects.condition(observed, "Ready"), "status") == "True"
    ready = int(at(observed, "status", "workloads", "primary", "readyReplicas", default=least if is_ready else 0))
    status: Manifest = {"replicas": {"ready": ready, "total": max(least, ready)}}
    url = at(observed, "status", "url") or at(observed, "status", "addresses", 0, "url")
    if url:
        status["endpoint"] = {"url": url, "model": model_name(request.composite), "api": "openai"}
    return status


def _not_ready(service: Manifest) -> str | None:
    """None if KServe says that this generation is ready and says where; else what is missing."""
    generation = at(service, "metadata", "generation", default=0)
    if at(service, "status", "observedGeneration", default=generation) < generation:
        return "KServe has not seen the last update yet"
    if at(objects.condition(service, "Ready"), "status") != "True":
        return _unmet(service) or "KServe has not said that it is ready yet"
    if not (at(service, "status", "url") or at(service, "status", "addresses", 0, "url")):
        return "KServe says that it is ready, but gives no address yet"
    return None


def _unmet(service: Manifest) -> str:
    """KServe's conditions that are False, with reason and message, either of which may be absent."""
    unmet = [c for c in at(service, "status", "conditions", default=[]) if at(c, "status") == "False"]
    return "; ".join(
        ": ".join(str(part) for part in (at(c, "type"), at(c, "reason"), at(c, "message")) if part) for c in unmet
    )


def _stop(service: Manifest) -> None:
    service["metadata"].setdefault("annotations", {})[STOP] = "true"


def _still_runs(service: Manifest) -> str | None:
    workloads_ready = objects.condition(service, "WorkloadsReady")
    stopped = at(workloads_ready, "status") == "False" and at(workloads_ready, "reason") == "Stopped"
    return None if stopped and not at(service, "status", "workloads") else "KServe has not said that it has stopped it"


def _is_stopped(service: Manifest) -> bool:
    return bool(at(service, "metadata", "annotations", STOP) == "true")


WORKLOAD = Workload(
    MAIN,
    _build,
    _observe,
    _not_ready,
    Stopping({MAIN: _stop}, _still_runs, STOPPED_WHEN, _is_stopped, keeps_slot=False),
)
