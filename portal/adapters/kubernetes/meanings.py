"""What a refusal means, and who must do what: an API server's answer as one of the port's errors.

In charge of: sorting by meaning. A status code says little: an unknown field comes as 400 or 500, a conflict of two
writers and one of two owners both as 409, a denial by policy as 403 or 422. The first rule that fits decides.
Not in charge of: what was sent (deliver), broken connections (client).

    field-conflict              T  somebody else has set the field to another value
    write-conflict              R  two writes met; the same again goes through
    admission-denied            T  a policy or webhook of the control plane refuses it
    admission-unavailable       R  a webhook that has to be asked does not answer
    namespace-missing           T  namespace-terminating R
    cluster-quota-exceeded      T  a ResourceQuota of the namespace is used up
    forbidden                   R  the portal's role lacks a right (1)
    credentials-refused         R  the portal's token or certificate is not accepted (any more)
    claim-invalid               T  the claim does not fit its schema: fields by JSON pointer
    claim-too-large             T
    offering-not-installed      R  the control plane does not serve this kind (1)
    cursor-expired              R  list again
    control-plane-busy          R  throttled, with the wait that it asks for
    control-plane-timeout       R  it did not answer in time
    control-plane-down          R  it answers with an error of its own
    refused                     T  any other 4xx

R is RetryableError, T is TerminalError.
(1) An API server that was just started says so too, for seconds, until it has read its roles and CRDs (seen on
kube-apiserver v1.35.4 that was killed, 2026-12-01); and whoever runs it can mend it while the request waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from portal.adapters.kubernetes.pointers import from_field_path
from portal.adapters.kubernetes.refusals import Action, Cause, Refusal
from portal.ports import PortError, RetryableError, TerminalError

ROLE = "ClusterRole aiplatform-portal (crossplane/rbac/portal.yaml)"

Rule = Callable[[Refusal, Action], PortError | None]

_MANAGER = re.compile(r'conflict with "([^"]+)"')
_FORBIDDEN = re.compile(r'User "([^"]*)" cannot (\S+) resource "([^"]*)"(?: in API group "([^"]*)")?')
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)'(?: with binding '[^']*')? denied request: (.*)", re.DOTALL)
_WEBHOOK_SAID = re.compile(r'admission webhook "([^"]+)" denied the request:? ?(.*)', re.DOTALL)
_WEBHOOK_DOWN = re.compile(r'failed calling webhook "([^"]+)": (.*)', re.DOTALL)
# structured-merge-diff and the strict decoder: both name the field in the text alone.
_UNDECLARED = re.compile(r"(\.\S+): field not declared in schema")
_UNKNOWN = re.compile(r'unknown field "([^"]+)"')
_MISTYPED = re.compile(r"(\.\S+): (expected [^\n]*)")


def meaning(refusal: Refusal, action: Action) -> PortError:
    """The error to raise for a refusal."""
    for rule in _RULES:
        found = rule(refusal, action)
        if found is not None:
            return found
    return TerminalError(
        "refused", f"{action.plane} refuses to {action.verb} {action.what} ({refusal.status}): {_text(refusal)}"
    )


def _conflict(refusal: Refusal, action: Action) -> PortError | None:
    if refusal.status == 422 and any(cause.field == "metadata.uid" for cause in refusal.causes):
        text = f"another {action.what} is on {action.plane} than a moment ago; it is read again and applied again"
        return RetryableError("write-conflict", text)
    if refusal.status != 409:
        return None
    owned = [cause for cause in refusal.causes if cause.reason == "FieldManagerConflict"]
    if owned:
        fields = "; ".join(f"{from_field_path(cause.field)} is set by {_manager(cause)}" for cause in owned)
        return TerminalError(
            "field-conflict",
            f"{action.what} on {action.plane} was changed by somebody else: {fields}. Have them take their value back, "
            "or take the field back as the portal's; nothing was written",
        )
    return RetryableError(
        "write-conflict", f"{action.what} on {action.plane} was written by somebody else meanwhile: {_text(refusal)}"
    )


def _manager(cause: Cause) -> str:
    match = _MANAGER.search(cause.message)
    return f"field manager {match.group(1)!r}" if match else cause.message


def _denied(refusal: Refusal, action: Action) -> PortError | None:
    for pattern, who in ((_POLICY, "ValidatingAdmissionPolicy"), (_WEBHOOK_SAID, "admission webhook")):
        match = pattern.search(refusal.message)
        if match:
            return TerminalError(
                "admission-denied",
                f"{who} {match.group(1)!r} of {action.plane} does not let {action.what} in: {match.group(2).strip()}",
            )
    match = _WEBHOOK_DOWN.search(refusal.message)
    if match is None:
        return None
    return RetryableError(
        "admission-unavailable",
        f"admission webhook {match.group(1)!r} of {action.plane} has to be asked and does not answer; whoever runs it "
        f"has to bring it up: {match.group(2).strip()}",
    )


def _namespace(refusal: Refusal, action: Action) -> PortError | None:
    if refusal.caused_by("NamespaceTerminating"):
        return RetryableError(
            "namespace-terminating",
            f"namespace {action.namespace!r} on {action.plane} is being deleted, nothing can be made in it. When it is "
            "gone it is made anew, if the Environment says so",
        )
    if refusal.status == 404 and refusal.kind == "namespaces" and action.namespace:
        return namespace_missing(action.namespace, action.plane)
    return None


def namespace_missing(namespace: str, plane: str) -> TerminalError:
    """A namespace that is not there and that the portal is not to make."""
    return TerminalError(
        "namespace-missing",
        f"namespace {namespace!r} is not there on {plane}; create it, or let the Environment create namespaces",
    )


def _forbidden(refusal: Refusal, action: Action) -> PortError | None:
    if refusal.status != 403:
        return None
    if "exceeded quota" in refusal.message:
        return TerminalError(
            "cluster-quota-exceeded",
            f"a ResourceQuota of namespace {action.namespace!r} on {action.plane} leaves no room: {_text(refusal)}. "
            "Whoever runs the control plane can raise it",
        )
    match = _FORBIDDEN.search(refusal.message)
    if match is None:
        return RetryableError("forbidden", f"{action.plane} forbids to {action.verb} {action.what}: {_text(refusal)}")
    user, verb, resource, group = match.groups()
    kind = f"{resource}.{group}" if group else resource
    return RetryableError(
        "forbidden",
        f"{user} may not {verb} {kind} on {action.plane}. Whoever administers it grants that by the {ROLE} and a "
        "binding to this user",
    )


def _unauthorized(refusal: Refusal, action: Action) -> PortError | None:
    if refusal.status != 401:
        return None
    return credentials_refused(action.plane)


def credentials_refused(plane: str) -> RetryableError:
    """A token or certificate that is not accepted, also after it was read again."""
    return RetryableError(
        "credentials-refused",
        f"{plane} does not accept the portal's credentials, which were read again from where they come from. Whoever "
        "runs the portal renews the token or certificate in its kubeconfig",
    )


def _invalid(refusal: Refusal, action: Action) -> PortError | None:
    unknown = _UNDECLARED.findall(refusal.message) + _UNKNOWN.findall(refusal.message)
    if unknown:  # 400 or 500, with or without a reason
        known = "this version of its kind has no such field; the offering's XRD on the control plane may be older"
        return invalid([(path, known) for path in unknown])
    mistyped = _MISTYPED.findall(refusal.message)
    if mistyped and refusal.status in (400, 422, 500):
        return invalid(mistyped)
    if refusal.status == 422 or refusal.reason == "Invalid":
        return invalid([(c.field, c.message) for c in refusal.causes if c.field] or [("", _text(refusal))])
    if refusal.status == 400:
        return invalid([("", _text(refusal))])
    if refusal.status == 413:
        return TerminalError(
            "claim-too-large",
            f"{action.what} is larger than {action.plane} takes: {_text(refusal)}. Make its texts shorter",
        )
    return None


def invalid(problems: list[tuple[str, str]]) -> TerminalError:
    """The refusal of a claim by (field path, message)."""
    texts = dict.fromkeys(f"{from_field_path(path) or '/'}: {message}" for path, message in problems)
    return TerminalError("claim-invalid", "; ".join(texts))


def _absent(refusal: Refusal, action: Action) -> PortError | None:
    if refusal.status != 404 or refusal.kind == "namespaces":
        return None
    return not_installed(action)


def not_installed(action: Action) -> RetryableError:
    """A kind that nobody serves there (yet)."""
    return RetryableError(
        "offering-not-installed",
        f"{action.plane} does not serve {action.what}: its XRD is not installed there, or not established. Whoever "
        "runs the control plane installs the offering (crossplane/apis)",
    )


def _gone(refusal: Refusal, action: Action) -> PortError | None:
    expired = refusal.status == 410 or refusal.reason in ("Expired", "Gone")
    if expired or refusal.caused_by("ResourceVersionTooLarge"):
        return cursor_expired(action.plane, _text(refusal))
    return None


def cursor_expired(plane: str, why: str) -> RetryableError:
    """A place in the history that can't be resumed from."""
    return RetryableError("cursor-expired", f"{plane} can't resume from there; list again: {why}")


def _unable(refusal: Refusal, action: Action) -> PortError | None:
    after = refusal.retry_after
    if refusal.status == 429:
        wait = f" for {after:g} s" if after else ""
        text = f"{action.plane} has too much to do and asks to wait{wait}: {_text(refusal)}"
        return RetryableError("control-plane-busy", text, after)
    if refusal.status == 504 or refusal.reason in ("Timeout", "ServerTimeout"):
        text = f"{action.plane} did not {action.verb} {action.what} in time: {_text(refusal)}"
        return RetryableError("control-plane-timeout", text, after)
    if refusal.status >= 500:
        text = f"{action.plane} can't {action.verb} {action.what} now ({refusal.status}): {_text(refusal)}"
        return RetryableError("control-plane-down", text, after)
    return None


def _text(refusal: Refusal) -> str:
    return refusal.message.strip() or refusal.reason or "it does not say why"


_RULES: tuple[Rule, ...] = (
    _denied,
    _conflict,
    _namespace,
    _gone,
    _forbidden,
    _unauthorized,
    _invalid,
    _absent,
    _unable,
)
