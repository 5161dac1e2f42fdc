"""The API entity of an Instance: what its address speaks, as a definition that Backstage shows.

In charge of: the APIs that `catalog.api` of an offering may name, `openai` being the only one. Not in charge of: the
Component that provides it (entity). The paths are those of OpenAI's API that vLLM, which a KServe LLMInferenceService
runs, answers below /v1.
"""

from __future__ import annotations

import json
from typing import Any

from portal.rendering.entity import EntityFacts, endpoint_links, labels, state_annotations, tags
from portal.rendering.entity_texts import MAX_TEXT, MAX_TITLE, is_web_address, shown

OPENAI = "openai"
URL = "url"  # the member of the offering's `endpoint` that holds the address


def render_api(facts: EntityFacts) -> dict[str, Any] | None:
    """The API entity of the same name, None for an instance without one. Raises ValueError for an API that isn't known
    here: a mistake of the caller."""
    if not facts.api:
        return None
    if facts.api != OPENAI:
        raise ValueError(f"catalog api {facts.api!r} of {facts.offering!r} is not {OPENAI}")
    title = shown(facts.title, MAX_TITLE - len(" API")) or facts.entity
    spec = {
        "type": "openapi",
        "lifecycle": facts.lifecycle,
        "owner": facts.owner_ref,
        "definition": json.dumps(_openai(facts, title), ensure_ascii=False, indent=2),
    }
    if facts.system:
        spec["system"] = facts.system
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "API",
        "metadata": {
            "name": facts.entity,
            "namespace": "default",
            "title": f"{title} API",
            "description": shown(
                f"OpenAI-compatible API of the {facts.offering_title} {facts.title} of {facts.team} in "
                f"{facts.environment}",
                MAX_TEXT,
            ),
            "labels": labels(facts),
            "annotations": state_annotations(facts),
            "links": endpoint_links(facts),
            "tags": tags(facts),
        },
        "spec": spec,
    }


def _openai(facts: EntityFacts, title: str) -> dict[str, Any]:
    """The definition; its server is there as soon as the address is known."""
    address = str(facts.endpoint.get(URL, ""))
    base = address.rstrip("/").removesuffix("/v1")
    return {
        "openapi": "3.0.3",
        "info": {
            "title": title,
            "version": "v1",
            "description": "What an OpenAI client needs: GET /v1/models says more.",
        },
        **({"servers": [{"url": f"{base}/v1"}]} if is_web_address(address) else {}),
        "paths": {
            "/models": {"get": _operation("listModels", "The models that are served here")},
            "/chat/completions": {"post": _operation("createChatCompletion", "Answer a conversation", _CHAT)},
            "/completions": {"post": _operation("createCompletion", "Continue a text", _COMPLETION)},
        },
    }


def _operation(name: str, summary: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"operationId": name, "summary": summary}
    if body is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    answer = {"description": "OK", "content": {"application/json": {"schema": {"type": "object"}}}}
    return {**made, "responses": {"200": answer}}


def _body(required: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["model", required],
        "properties": {
            "model": {"type": "string"},
            required: schema,
            "max_tokens": {"type": "integer", "minimum": 1},
            "temperature": {"type": "number", "minimum": 0, "maximum": 2},
            "stream": {"type": "boolean", "default": False},
        },
    }


_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"type": "string", "enum": ["system", "user", "assistant", "tool"]},
        "content": {"type": "string"},
    },
}
_CHAT = _body("messages", {"type": "array", "minItems": 1, "items": _MESSAGE})
_COMPLETION = _body("prompt", {"type": "string"})
