"""Who must do what about a claim that is not well: one sentence for each kind of trouble.

In charge of: telling kinds of trouble apart by what the control plane said, and the sentence. Not in charge of: the
phase (claim_status). The words looked for are those of Crossplane v2.2 (internal/controller/apiextensions/composite,
internal/xfn, apis/apiextensions/v1/conditions.go) and of gRPC's status codes, read 2026-12-01; the portal's own are
those of its composition function.
"""

from __future__ import annotations

import re

UNKNOWN = "Show this message to the platform team; the control plane tries again by itself meanwhile."
PAUSED = (
    "Whoever paused it (the platform team, as a rule) takes the annotation crossplane.io/paused off the claim; until "
    "then nothing that changes is carried out or seen."
)
CIRCUIT = (
    "Nothing to do for five minutes: the control plane rests from too many changes, and its status is late. If it "
    "comes back, the platform team finds what changes the composed objects over and over."
)
SILENT = (
    "The platform team looks whether the control plane and its composition function run. What serves goes on as it is, "
    "and the change is carried out by itself once they do."
)
V1_SILENT = "The platform team reads the conditions of the composite resource behind the claim; they hold the cause."
EXPECTED = "Nothing to do: it goes on by itself."
NOT_OURS = (
    "The portal did not ask for this: ask who deleted the claim. It can't be called back; request it anew once it is "
    "gone."
)

# The first that fits is said; what says more of its cause comes before what says less.
_TROUBLES: tuple[tuple[str, str], ...] = (
    (
        r"ApprovalMissing|ApprovalInvalid|ApprovalForeign",
        "Somebody made or altered this claim beside the portal. Ask for what you want in the portal, or have it taken "
        "back there: it signs what was approved.",
    ),
    (
        r"ApprovalKeyUnknown",
        "The platform team looks whether the portal's public keys reach the control plane (ConfigMap "
        "portal-approval-keys in portal-system); it is tried again by itself.",
    ),
    (
        r"ApprovalExpired",
        "The platform team renews the portal's approvals (manage.py signing_key resign). What runs is kept until then.",
    ),
    (
        r"ApprovalExceeded",
        "Ask for a change in the portal, so that what the claim holds now is approved, or have it taken back there.",
    ),
    (
        r"missing required capabilities",
        "The platform team installs the composition function so that its package says it can compose (capability "
        "composition); nobody else can mend this.",
    ),
    (
        r"no compatible Composition|cannot select Composition\b|cannot get Composition\b|not compatible with this comp",
        "The platform team installs the Composition that the claim names; an XRD alone makes nothing.",
    ),
    (
        r"CompositionRevision|composition revision|cannot fetch Composition\b",
        "The approved revision of the Composition is not there: the platform team brings it back, or a change is asked "
        "for, which is approved with the newest one.",
    ),
    (
        r"DeadlineExceeded|deadline exceeded|code = Unavailable|connection refused|no such host|transport is closing",
        "The platform team starts the composition function again, or what it waits for. What runs is left as it is, "
        "and the control plane tries again by itself.",
    ),
    (
        r"cluster scoped composed resource|not namespaced|refusing to delete composed resource|invalid name",
        "The platform team mends the Composition or its function: it composes what a claim in a namespace must not.",
    ),
    (
        r"[Ff]orbidden|cannot (create|patch|get|list) resource|[Uu]nauthorized",
        "The platform team grants Crossplane, or the provider named here, the right that it misses.",
    ),
    (
        r"[Uu]nsynced resources|resources were invalid|is invalid|field not declared",
        "The Events below hold the cause, for as long as they are kept. The platform team mends what the Composition "
        "makes; if they name a value of yours, ask for a change.",
    ),
    (
        r"fatal result|pipeline step",
        "The composition function says why. If it names a field of the spec, ask for a change of that; else the "
        "platform team mends the fleet or the function.",
    ),
    (
        r"NoCapacity",
        "Wait until a cluster has room, or ask for a change: less of it, another class, or more regions.",
    ),
    (r"NoFleet|NoCluster", "The platform team adds an InferenceCluster to the fleet."),
    (
        r"HeldBack",
        "Ask for a change that fits where it runs, or wait until there is room: it is tried again by itself.",
    ),
    (
        r"Unreachable|unreachable",
        "The platform team brings the workload cluster back; what runs there is kept, and nothing new goes to it.",
    ),
    (
        r"ImagePull|ErrImage|CrashLoop|OOMKilled|Unschedulable|[Ii]nsufficient",
        "The workload's own message says what it misses: a change of the spec if it names one of its values, else the "
        "platform team.",
    ),
)
_COMPILED = tuple((re.compile(pattern), sentence) for pattern, sentence in _TROUBLES)

_FINALIZERS: tuple[tuple[str, str], ...] = (
    ("foregroundDeletion", "Kubernetes removes what belongs to it first"),
    ("orphan", "Kubernetes lets go of what belongs to it first"),
    ("composite.apiextensions.crossplane.io", "Crossplane removes what it composed first"),
    ("finalizer.apiextensions.crossplane.io", "Crossplane removes the composite resource behind it first"),
    (
        "finalizer.managedresource.crossplane.io",
        "its provider removes what it stands for, in the workload cluster or at the cloud, first",
    ),
    ("kubernetes.crossplane.io/referred-by-object-", "another Object refers to it"),
    ("usage.apiextensions.crossplane.io", "a Usage protects it"),
    ("kubernetes.io/pvc-protection", "a pod still uses it"),
)


def about(text: str, otherwise: str = UNKNOWN) -> str:
    """What to do about a claim that says this; `otherwise` when that is no trouble known here."""
    return next((sentence for pattern, sentence in _COMPILED if pattern.search(text)), otherwise)


def why_kept(finalizer: str) -> str:
    """Why whoever set this finalizer keeps an object, or "" when it isn't known."""
    return next((why for name, why in _FINALIZERS if finalizer == name or _stem(finalizer, name)), "")


def _stem(finalizer: str, name: str) -> bool:
    return name.endswith("-") and finalizer.startswith(name)
