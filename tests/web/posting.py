"""What a browser posts for the request form of a model deployment."""

from __future__ import annotations

MODEL_FORM = {
    "idempotencyKey": "key-1",
    "/team": "search",
    "/environment": "dev",
    "/name": "chat",
    "/spec/model/source": "hf://meta-llama/Llama-3.1-8B-Instruct",
    "/spec/model/revision": "main",
    "/spec/model/quantization": "none",
    "/spec/contextLength": "4096",
    "/spec/concurrency": "8",
    "/spec/replicas/min": "1",
    "/spec/replicas/max": "1",
    "/spec/accelerator/class": "l4",
    "/spec/accelerator/count": "1",
    "/spec/dataClassification": "internal",
    "/reason": "answers questions",
}
CREATE = "/offerings/modeldeployments/request/"
PREVIEW = "/offerings/modeldeployments/preview/"


def model_form(**changes: str) -> dict[str, str]:
    """The form; a key such as `spec_replicas_max` or `name` replaces /spec/replicas/max or /name."""
    return {**MODEL_FORM, **{"/" + key.replace("_", "/"): value for key, value in changes.items()}}
