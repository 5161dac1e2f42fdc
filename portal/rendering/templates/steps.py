"""What a template does, and what the person sees at its end, in two flavours.

A whole-value expression (`${{ parameters.x }}`) keeps its type, and a parameter that was not given drops out; what a
person wrote is a value in it and is never evaluated. In charge of: steps and output. Not in charge of: forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Flavour = Literal["http", "actions"]
FLAVOURS: tuple[Flavour, ...] = ("http", "actions")
READY_SECONDS = 3_600

_BODY = "steps.request.output.body"


def create(offering: str, values: Mapping[str, str], flavour: Flavour) -> dict[str, Any]:
    """Submit, and with the module wait until it is ready."""
    body = {
        "kind": "Create",
        "offering": offering,
        "team": "${{ parameters.team | parseEntityRef | pick('name') }}",
        "environment": "${{ parameters.environment }}",
        "name": "${{ parameters.name }}",
        "reason": "${{ parameters.reason }}",
        "spec": dict(values),
    }
    return _submit(body, flavour)


def change(values: Mapping[str, str], flavour: Flavour) -> dict[str, Any]:
    return _submit(
        {
            "kind": "Change",
            "instance": "${{ parameters.instance }}",
            "reason": "${{ parameters.reason }}",
            "spec": dict(values),
        },
        flavour,
    )


def of_instance(kind: str, flavour: Flavour) -> dict[str, Any]:
    """Suspend, Resume, Delete: naming the instance says it all."""
    return _submit(
        {"kind": kind, "instance": "${{ parameters.instance }}", "reason": "${{ parameters.reason }}"}, flavour
    )


def vote(flavour: Flavour) -> dict[str, Any]:
    if flavour == "actions":
        given = {
            "requestId": "${{ parameters.request }}",
            "answer": "${{ parameters.answer }}",
            "comment": "${{ parameters.comment }}",
        }
        step = {"id": "request", "name": "Vote", "action": "portal:request:vote", "input": given}
        return {"steps": [step], "output": _told("steps.request.output", "steps.request.output.requestUrl")}
    path = "/proxy/portal/requests/${{ parameters.request }}/${{ parameters.answer }}/"
    return {
        "steps": [_http("Vote", path, {"comment": "${{ parameters.comment }}"})],
        "output": _told(f"{_BODY}.summary", f"{_BODY}.links.page", refused=True),
    }


def _submit(body: dict[str, Any], flavour: Flavour) -> dict[str, Any]:
    if flavour == "http":
        return {
            "steps": [_http("Ask the portal", "/proxy/portal/requests/", body)],
            "output": _told(f"{_BODY}.summary", f"{_BODY}.links.page", refused=True),
        }
    request = {
        "id": "request",
        "name": "Ask the portal",
        "action": "portal:request:create",
        "input": {"body": body},
    }
    ready = {
        "id": "ready",
        "name": "Wait until it is ready",
        "action": "portal:request:wait",
        "input": {
            "requestId": "${{ steps.request.output.requestId }}",
            "until": "ready",
            "timeoutSeconds": READY_SECONDS,
        },
    }
    return {
        "steps": [request, ready],
        "output": _told("steps.request.output", "steps.request.output.requestUrl"),
    }


def _http(name: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """A refusal has to get through with its reasons: Backstage alone says only that it couldn't."""
    return {
        "id": "request",
        "name": name,
        "action": "http:backstage:request",
        "input": {
            "method": "POST",
            "path": path,
            "headers": {
                "content-type": "application/json",
                "accept": "application/json",
                "Idempotency-Key": "${{ context.task.id }}",
            },
            "continueOnBadResponse": True,
            "body": body,
        },
    }


def _told(where: str, page: str, *, refused: bool = False) -> dict[str, Any]:
    """Links and texts. With `refused` a refusal's own text comes first, and nothing else is said then."""
    texts = [
        {"title": "Decision", "content": f"${{{{ {where}.decision }}}}"},
        {"title": "Price", "content": f"${{{{ {where}.price }}}}"},
        {"title": "Next", "content": f"${{{{ {where}.next }}}}"},
        {"title": "Reasons", "content": f"${{{{ {where}.reasons | join('; ') }}}}"},
    ]
    link: dict[str, Any] = {"title": "Request in the portal", "url": f"${{{{ {page} }}}}", "icon": "dashboard"}
    if refused:
        sent = f"${{{{ {page} }}}}"
        texts = [{"if": sent, **text} for text in texts]
        link = {"if": sent, **link}
        no = f"${{{{ {_BODY}.detail }}}}"
        texts = [{"if": no, "title": "The portal refused this", "content": no}, *texts]
    return {"links": [link], "text": texts}
