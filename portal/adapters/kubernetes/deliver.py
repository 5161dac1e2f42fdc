"""The writing half: server-side apply as field manager `portal`, dry run, deletion, namespaces, revisions.

In charge of: whose an object is before it is written, and what the answer says. Not in charge of: how a refusal is
sorted (meanings).

No stranger's object is patched, although server-side apply makes and changes with one verb:
    it is there       its label says whose it is (without one, the uid that the claim says it adopts); the apply names
                      its uid, so that it changes this object or none
    it is not there   the answer must be 201. With 200 somebody made one in the meantime: if it carries another label
                      than ours the apply conflicts, and nothing is written; if it carries none, what was added is
                      taken back by applying nothing (without force nothing of theirs was overwritten)
Two instances of one portal never meet there: one name in one environment is one instance (models), whose deliveries
come one after the other (outbox).
"""

from __future__ import annotations

from typing import Any

from portal.adapters.kubernetes import meanings, paths
from portal.adapters.kubernetes.client import APPLY, Answer, Client
from portal.adapters.kubernetes.cursors import key_of
from portal.adapters.kubernetes.discovery import Kinds
from portal.adapters.kubernetes.observe import Seen
from portal.adapters.kubernetes.paging import every_item
from portal.adapters.kubernetes.refusals import Action
from portal.domain.json_limits import first_problem
from portal.ports import Applied, ClaimRef, DryRun, PortError, RetryableError, TerminalError
from portal.rendering.claim import ADOPTED_UID
from portal.rendering.names import ANNOTATION_PREFIX

FIELD_MANAGER = "portal"
INSTANCE_LABEL = f"{ANNOTATION_PREFIX}instance"
_REVISIONS = "apiextensions.crossplane.io/v1"
_COMPOSITION_LABEL = "crossplane.io/composition-name"


class Deliverer:
    """See ports.Deliver; without approval keys."""

    def __init__(self, client: Client, seen: Seen) -> None:
        self._client, self._seen = client, seen
        self._kinds = Kinds(client)

    def ensure_namespace(self, namespace: str, create: bool, labels: dict[str, str]) -> None:
        """An existing namespace stays as it is: the portal's role may make namespaces, and not change them."""
        path = paths.of_kind("v1", "namespaces")
        action = Action(self._client.plane, "get", f"namespace {namespace!r}", namespace)
        found = self._client.find(action, f"{path}/{paths.checked(namespace, '/metadata/namespace')}")
        if found is not None and found["metadata"].get("deletionTimestamp"):
            raise RetryableError(
                "namespace-terminating",
                f"namespace {namespace!r} on {action.plane} is being deleted; nothing can be made in it until it is "
                "gone",
            )
        if found is not None:
            return
        if not create:
            raise meanings.namespace_missing(namespace, action.plane)
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
        making = Action(action.plane, "create", action.what, namespace)
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        self._client.write(making, "POST", path, body, query=query, accept=(409,))  # 409: another was faster

    def composition_revision(self, composition: str) -> str:
        action = Action(self._client.plane, "list", "CompositionRevisions of apiextensions.crossplane.io")
        label = paths.checked(composition, "/spec/crossplane/compositionRef/name")
        path = paths.of_kind(_REVISIONS, "compositionrevisions")
        found = every_item(self._client, action, path, {"labelSelector": f"{_COMPOSITION_LABEL}={label}"})
        newest = max(found, key=lambda each: int(each["spec"]["revision"]), default=None)
        if newest is None:
            raise TerminalError(
                "composition-missing",
                f"no Composition {composition!r} on {action.plane}; whoever runs it applies it (crossplane/apis)",
            )
        return str(newest["metadata"]["name"])

    def apply(self, claim: dict[str, Any], force: bool) -> Applied:
        answer, there = self._apply(claim, force, dry=False)
        if not there and answer.status != 201:
            self._keep_only_ours(claim, answer.body)
        metadata = answer.body["metadata"]
        plural = self._kinds.plural(_action(self._client.plane, claim), claim["apiVersion"], claim["kind"])
        self._seen.note(key_of(plural, claim["apiVersion"]), metadata["resourceVersion"])
        return Applied(metadata["uid"], int(metadata.get("generation", 1)), metadata["resourceVersion"])

    def dry_run(self, claim: dict[str, Any]) -> DryRun:
        answer, live = self._apply(claim, False, dry=True)
        return DryRun(without_managed_fields(answer.body), without_managed_fields(live) if live else None)

    def delete(self, ref: ClaimRef, uid: str | None) -> None:
        action = Action(self._client.plane, "delete", f"{ref.kind} {ref.name!r}", ref.namespace)
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        # 409: another uid under that name, which is another object. 404: gone, unless its kind is not served.
        answer = self._client.write(action, "DELETE", paths.of_claim(ref), options, accept=(404, 409))
        if answer.status == 404 and not (answer.body.get("details") or {}).get("kind"):
            raise meanings.not_installed(action)

    def _apply(self, claim: dict[str, Any], force: bool, dry: bool) -> tuple[Answer, dict[str, Any] | None]:
        """The answer, and what was there before."""
        instance = _instance_of(claim)
        metadata = claim["metadata"]
        action = _action(self._client.plane, claim)
        plural = self._kinds.plural(action, claim["apiVersion"], claim["kind"])
        path = paths.of_object(claim["apiVersion"], plural, metadata["namespace"], metadata["name"])
        live = self._client.find(action, path)
        if live is not None:
            _check_ours(action, live, instance, metadata.get("annotations", {}).get(ADOPTED_UID))
            claim = {**claim, "metadata": {**metadata, "uid": live["metadata"]["uid"]}}
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", "force": str(force).lower()}
        if dry:
            query["dryRun"] = "All"
        try:
            answer = self._client.write(action, "PATCH", path, claim, query=query, content_type=APPLY)
        except PortError as error:
            raise _sharpened(error, action, live is not None) from error
        return answer, live

    def _keep_only_ours(self, claim: dict[str, Any], made: dict[str, Any]) -> None:
        """After an apply that should have made the object, and changed one: take back what was added to a stranger's.

        The portal's own, by another attempt at the same time, has no spec of anybody else's in it.
        """
        others = {
            entry.get("manager")
            for entry in made["metadata"].get("managedFields", ())
            if INSTANCE_LABEL in str(entry.get("fieldsV1")) and entry.get("manager") != FIELD_MANAGER
        }
        created_by_us = _only_manager_of_spec(made)
        if created_by_us and not others:
            return
        action = _action(self._client.plane, claim)
        metadata = {key: claim["metadata"][key] for key in ("name", "namespace")} | {"uid": made["metadata"]["uid"]}
        nothing = {"apiVersion": claim["apiVersion"], "kind": claim["kind"], "metadata": metadata}
        plural = self._kinds.plural(action, claim["apiVersion"], claim["kind"])
        path = paths.of_object(claim["apiVersion"], plural, metadata["namespace"], metadata["name"])
        query = {"fieldManager": FIELD_MANAGER, "force": "false"}
        self._client.write(action, "PATCH", path, nothing, query=query, content_type=APPLY)
        raise _taken(action, "none of ours: it was made at the same time")


def without_managed_fields(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as people read it."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    return {**manifest, "metadata": metadata}


def _action(plane: str, claim: dict[str, Any]) -> Action:
    metadata = claim["metadata"]
    return Action(plane, "apply", f"{claim['kind']} {metadata['name']!r}", metadata["namespace"])


def _instance_of(claim: dict[str, Any]) -> str:
    """The instance that a claim is of, once its form is fit. TerminalError `claim-invalid`."""
    problem = first_problem(claim)
    if problem is not None:
        raise TerminalError("claim-invalid", f"{problem[0] or '/'}: {problem[2]}")
    metadata = claim.get("metadata")
    for holder, field, where in ((claim, "apiVersion", ""), (claim, "kind", ""), (metadata, "name", "/metadata")):
        if not isinstance(holder, dict) or not isinstance(holder.get(field), str) or not holder[field]:
            raise TerminalError("claim-invalid", f"{where}/{field}: is missing; it must be a text")
    paths.checked(claim["metadata"].get("namespace", ""), "/metadata/namespace")
    instance = (claim["metadata"].get("labels") or {}).get(INSTANCE_LABEL)
    if not isinstance(instance, str) or not instance:
        raise TerminalError("claim-invalid", f"/metadata/labels: a claim carries the label {INSTANCE_LABEL}")
    return instance


def _check_ours(action: Action, live: dict[str, Any], instance: str, adopted_uid: str | None) -> None:
    label = live["metadata"].get("labels", {}).get(INSTANCE_LABEL)
    adopted = label is None and live["metadata"]["uid"] == adopted_uid
    if label != instance and not adopted:
        raise _taken(action, repr(label))
    if live["metadata"].get("deletionTimestamp"):
        raise RetryableError(
            "claim-deleting", f"{action.what} on {action.plane} is being deleted; it is applied again when it is gone"
        )


def _taken(action: Action, label: str) -> TerminalError:
    return TerminalError(
        "claim-name-taken",
        f"{action.what} in namespace {action.namespace!r} exists on {action.plane} and belongs to somebody else (its "
        f"label {INSTANCE_LABEL} is {label}); choose another name or have it removed",
    )


def _only_manager_of_spec(made: dict[str, Any]) -> bool:
    """Whether nobody but the portal (and the core, in its own part) has set a field of the spec."""
    for entry in made["metadata"].get("managedFields", ()):
        spec = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        theirs = set(spec) - {"f:crossplane", "."}
        if entry.get("manager") != FIELD_MANAGER and theirs:
            return False
    return True


def _sharpened(error: PortError, action: Action, was_there: bool) -> PortError:
    """A conflict over the label that says whose it is: the object was made, or made another's, since it was read."""
    if error.code == "field-conflict" and not was_there:
        return _taken(action, "another, or none: it was made at the same time")
    if error.code == "field-conflict" and INSTANCE_LABEL.replace("/", "~1") in error.message:
        return _taken(action, "another by now")
    return error
