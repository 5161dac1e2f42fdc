"""Each refusal that an API server can give, and what the portal makes of it: code, whether it may pass, what is said.

The texts are those of kube-apiserver 1.35, seen or read in its source (2026-12-01).
"""

from __future__ import annotations

import dataclasses

import orjson
import pytest

from portal.adapters.kubernetes.meanings import meaning
from portal.adapters.kubernetes.refusals import Action, refusal
from portal.ports import RetryableError, TerminalError
from tests.adapters.fake_api_server import Object, status

ACTION = Action("prod", "apply", "ModelDeployment 'chat'", "search-dev")
TYPED = "failed to create typed patch object (search-dev/chat; aiplatform.example.org/v1alpha1, Kind=ModelDeployment): "


@dataclasses.dataclass(frozen=True)
class Case:
    reason: str
    status: int
    body: Object | str
    code: str
    retry: bool
    says: tuple[str, ...] = ()
    after: float | None = None
    headers: dict[str, str] = dataclasses.field(default_factory=dict)


def conflict(*owned: tuple[str, str]) -> Object:
    causes = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{manager}" using v1', "field": field}
        for field, manager in owned
    ]
    return status(409, "Conflict", "Apply failed with conflicts", causes)


CASES = [
    Case(
        "two fields of two others, both named (case 17)",
        409,
        conflict((".spec.replicas.max", "kubectl"), ('.metadata.labels["a/b"]', "keda")),
        "field-conflict",
        False,
        ("/spec/replicas/max is set by field manager 'kubectl'", "'keda'", "nothing was written"),
    ),
    Case(
        "two writes met",
        409,
        status(409, "Conflict", "the object has been modified; please apply your changes to the latest version"),
        "write-conflict",
        True,
        ("the object has been modified",),
    ),
    Case(
        "a right is missing",
        403,
        status(
            403,
            "Forbidden",
            'modeldeployments.aiplatform.example.org "chat" is forbidden: User "portal" cannot patch resource '
            '"modeldeployments" in API group "aiplatform.example.org" in the namespace "search-dev"',
        ),
        "forbidden",
        True,
        ("portal may not patch modeldeployments.aiplatform.example.org", "ClusterRole aiplatform-portal", "Whoever"),
    ),
    Case(
        "403 may be the namespace's end",
        403,
        status(
            403,
            "Forbidden",
            "unable to create new content in namespace search-dev because it is being terminated",
            [{"reason": "NamespaceTerminating", "message": "namespace search-dev is being terminated", "field": "x"}],
        ),
        "namespace-terminating",
        True,
        ("search-dev",),
    ),
    Case(
        "403 may be a ResourceQuota",
        403,
        status(403, "Forbidden", 'widgets "a" is forbidden: exceeded quota: most, requested: count/widgets=1'),
        "cluster-quota-exceeded",
        False,
        ("ResourceQuota", "exceeded quota: most"),
    ),
    Case(
        "403 of another authorizer",
        403,
        status(403, "Forbidden", "node authorizer says no"),
        "forbidden",
        True,
        ("node authorizer says no",),
    ),
    Case(
        "a policy that answers 422",
        422,
        status(
            422,
            "Invalid",
            "modeldeployments.aiplatform.example.org \"chat\" is forbidden: ValidatingAdmissionPolicy 'own' with "
            "binding 'own' denied request: only the portal makes these",
        ),
        "admission-denied",
        False,
        ("'own'", "only the portal makes these"),
    ),
    Case(
        "a policy that answers 403",
        403,
        status(403, "Forbidden", "ValidatingAdmissionPolicy 'own' denied request: no"),
        "admission-denied",
        False,
        ("'own'",),
    ),
    Case(
        "a webhook says no",
        400,
        status(400, "BadRequest", 'admission webhook "w.example.org" denied the request: not on Fridays'),
        "admission-denied",
        False,
        ("'w.example.org'", "not on Fridays"),
    ),
    Case(
        "a webhook is away",
        500,
        status(500, "InternalError", 'Internal error occurred: failed calling webhook "w.example.org": dial tcp: no'),
        "admission-unavailable",
        True,
        ("'w.example.org'", "whoever runs it"),
    ),
    Case(
        "the schema",
        422,
        status(
            422,
            "Invalid",
            "is invalid",
            [
                {"reason": "FieldValueInvalid", "message": "should be at most 10", "field": "spec.replicas[0].max"},
                {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.model"},
            ],
        ),
        "claim-invalid",
        False,
        ("/spec/replicas/0/max: should be at most 10", "/spec/model: Required value"),
    ),
    Case("invalid without causes", 422, status(422, "Invalid", "no"), "claim-invalid", False, ("/: no",)),
    Case(
        "an unknown field, by the merger, as a fault of the server",
        500,
        status(500, "", TYPED + ".spec.modle: field not declared in schema"),
        "claim-invalid",
        False,
        ("/spec/modle: ", "older"),
    ),
    Case(
        "an unknown field, by the strict decoder",
        400,
        status(400, "BadRequest", 'strict decoding error: unknown field "spec.modle", unknown field "spec.x"'),
        "claim-invalid",
        False,
        ("/spec/modle: ", "/spec/x: "),
    ),
    Case(
        "another type, by the merger",
        500,
        status(500, "", TYPED + ".spec.replicas.max: expected numeric (int or float), got string"),
        "claim-invalid",
        False,
        ("/spec/replicas/max: expected numeric (int or float), got string",),
    ),
    Case("not JSON", 400, status(400, "BadRequest", "yaml: line 1"), "claim-invalid", False, ("yaml: line 1",)),
    Case("too large", 413, status(413, "RequestEntityTooLarge", "limit is 3145728"), "claim-too-large", False),
    Case(
        "throttled, with a header",
        429,
        status(429, "TooManyRequests", "too many requests"),
        "control-plane-busy",
        True,
        ("asks to wait for 7 s",),
        after=7.0,
        headers={"Retry-After": "7"},
    ),
    Case(
        "throttled, with a detail",
        429,
        status(429, "TooManyRequests", "try later", retryAfterSeconds=3),
        "control-plane-busy",
        True,
        after=3.0,
    ),
    Case("throttled, by something in between", 429, "slow down", "control-plane-busy", True, ("slow down",)),
    Case(
        "a wait that is a date",
        429,
        "slow down",
        "control-plane-busy",
        True,
        headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"},
    ),
    Case(
        "not ready",
        503,
        status(503, "ServiceUnavailable", "apiserver not ready"),
        "control-plane-down",
        True,
        ("apiserver not ready",),
        after=2.0,
        headers={"Retry-After": "2"},
    ),
    Case("a proxy in between", 502, "<html>bad gateway</html>", "control-plane-down", True, ("502",)),
    Case("etcd is away", 500, status(500, "", "etcdserver: leader changed"), "control-plane-down", True),
    Case("too slow", 504, status(504, "Timeout", "context deadline exceeded"), "control-plane-timeout", True),
    Case(
        "a version from the future",
        504,
        status(504, "Timeout", "Too large resource version", [{"reason": "ResourceVersionTooLarge", "message": "x"}]),
        "cursor-expired",
        True,
    ),
    Case("compacted", 410, status(410, "Expired", "too old resource version"), "cursor-expired", True, ("list again",)),
    Case("gone without a Status", 410, "gone", "cursor-expired", True),
    Case("credentials", 401, status(401, "Unauthorized", "Unauthorized"), "credentials-refused", True, ("renews",)),
    Case(
        "the namespace is missing",
        404,
        status(404, "NotFound", 'namespaces "search-dev" not found', kind="namespaces", name="search-dev"),
        "namespace-missing",
        False,
        ("'search-dev'",),
    ),
    Case("no such kind", 404, "404 page not found\n", "offering-not-installed", True, ("XRD", "Whoever runs")),
    Case("something new", 418, status(418, "Teapot", "short and stout"), "refused", False, ("418", "short and stout")),
    Case("an empty answer", 418, "", "refused", False, ("does not say why",)),
]


@pytest.mark.parametrize("case", CASES, ids=[case.reason for case in CASES])
def test_a_refusal_means(case: Case) -> None:
    content = orjson.dumps(case.body) if isinstance(case.body, dict) else case.body.encode()
    error = meaning(refusal(case.status, content, case.headers), ACTION)
    assert error.code == case.code, case.reason
    assert isinstance(error, RetryableError if case.retry else TerminalError), case.reason
    for part in case.says:
        assert part in error.message, case.reason
    if isinstance(error, RetryableError):
        assert error.retry_after == case.after, case.reason


def test_every_code_is_in_the_table_of_the_module() -> None:
    from portal.adapters.kubernetes import meanings

    assert meanings.__doc__ is not None
    assert {case.code for case in CASES} <= set(meanings.__doc__.split())
