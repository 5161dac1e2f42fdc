"""In charge of: which programs and CRDs of other projects are used, in which versions, and how each is built.

Facts on building them were found by doing it (2026-12-01, Go 1.26.8). Not in charge of: doing it (build.py, crds.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from portal.running.crossplane.golang import GoModule
from portal.running.errors import BuildFailed

KUBERNETES = GoModule("k8s.io/kubernetes", "v1.35.4", "h1:o/8dBC/pHVpYoGV4OAIytAlNPZbdYVTXJHoYvXC4qzM=")
CROSSPLANE = GoModule(
    "github.com/crossplane/crossplane/v2", "v2.2.1", "h1:1oN2prePpsJAi6+W/qe53AA/nHCeDQCIMDth5jetSr4="
)
PROVIDER_KUBERNETES = GoModule(
    "github.com/crossplane-contrib/provider-kubernetes", "v1.0.0", "h1:tsK7OlJP/D+/FBGK16QGXRgR0TxGjE5Mt4Uvj5yszXI="
)
KSERVE = GoModule("github.com/kserve/kserve", "v0.20.0", "h1:Bs7HxmGV4KFqqptDcWseKv+mwD4YOYHJWcuVgPG2Gug=")
CLOUDNATIVE_PG = GoModule(
    "github.com/cloudnative-pg/cloudnative-pg", "v1.30.0", "h1:fnhVq44xXx97MNiuvJsPrX1vSjYbgdyBK5MSGfdHdp0="
)
STAGING_SUMS = Path(__file__).with_name("kubernetes-staging.sum")


@dataclass(frozen=True)
class Part:
    """A program that is built from a Go module.

    `prepare` changes a copy of the module's source; whoever changes what it does gives the part another `edition`.
    """

    name: str
    module: GoModule
    package: str
    prepare: Callable[[Path], None] = lambda source: None
    edition: str = ""
    variables: tuple[str, ...] = ()  # what the linker sets


@dataclass(frozen=True)
class Definitions:
    """The folder of a Go module that holds CRDs, and the kinds among them that are installed here."""

    module: GoModule
    folder: str
    kinds: tuple[str, ...] = ()


def published_staging(source: Path) -> None:
    """Kubernetes' own go.mod takes its libraries from folders that the module does not have: take the published ones.

    They have the same version with v0 in place of v1, and their sums are not in Kubernetes' go.sum.
    """
    version = KUBERNETES.version.replace("v1.", "v0.", 1)
    file = source / "go.mod"
    text, count = re.subn(
        r"^(\s*)(k8s\.io/[a-z-]+) => \./staging/src/\2$", rf"\1\2 => \2 {version}", file.read_text(), flags=re.MULTILINE
    )
    # They ask for each other in that version, so Kubernetes has to as well.
    text = re.sub(r"^(\s*k8s\.io/[a-z-]+) v0\.0\.0(?=\s)", rf"\1 {version}", text, flags=re.MULTILINE)
    if count < 20:
        raise BuildFailed(f"{KUBERNETES.path} {KUBERNETES.version}: go.mod replaces its libraries in another way now")
    file.write_text(text)
    with open(source / "go.sum", "a") as sums:
        sums.write(STAGING_SUMS.read_text())


_LOCAL_PORT = """package main

import (
\t"os"
\t"strconv"
)

// localWebhookPort lets several providers live on one machine; 0 is controller-runtime's default.
func localWebhookPort() int {
\tport, _ := strconv.Atoi(os.Getenv("WEBHOOK_PORT"))
\treturn port
}
"""


def movable_webhook(source: Path) -> None:
    """provider-kubernetes v1.0.0 has no flag for the port of its webhook server, nor for its interface."""
    file = source / "cmd" / "provider" / "main.go"
    before = "CertDir: certDir,"
    text = file.read_text()
    if text.count(before) != 1:
        raise BuildFailed(f"{PROVIDER_KUBERNETES.path} {PROVIDER_KUBERNETES.version}: its main.go is another one now")
    file.write_text(text.replace(before, f'{before} Host: "127.0.0.1", Port: localWebhookPort(),'))
    file.with_name("local_port.go").write_text(_LOCAL_PORT)


_KUBERNETES_VERSION = (f"k8s.io/component-base/version.gitVersion={KUBERNETES.version}",)
KUBE_APISERVER = Part(
    "kube-apiserver", KUBERNETES, "./cmd/kube-apiserver", published_staging, variables=_KUBERNETES_VERSION
)
KUBE_CONTROLLER_MANAGER = Part(
    "kube-controller-manager",
    KUBERNETES,
    "./cmd/kube-controller-manager",
    published_staging,
    variables=_KUBERNETES_VERSION,
)
CROSSPLANE_CORE = Part(
    "crossplane",
    CROSSPLANE,
    "./cmd/crossplane",
    variables=(f"github.com/crossplane/crossplane/v2/internal/version.version={CROSSPLANE.version}",),
)
PROVIDER = Part(
    "provider-kubernetes",
    PROVIDER_KUBERNETES,
    "./cmd/provider",
    movable_webhook,
    edition="+local1",
    # It has no flag for the port of its metrics either, and 8080 is often taken: none.
    variables=("sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=0",),
)
PARTS = (KUBE_APISERVER, CROSSPLANE_CORE, KUBE_CONTROLLER_MANAGER, PROVIDER)

CROSSPLANE_CRDS = Definitions(CROSSPLANE, "cluster/crds")
# All of its kinds: it watches them, whether there are any or not.
PROVIDER_CRDS = Definitions(
    PROVIDER_KUBERNETES,
    "package/crds",
    ("Object", "ObservedObjectCollection", "ProviderConfig", "ProviderConfigUsage", "ClusterProviderConfig"),
)
KSERVE_CRDS = Definitions(KSERVE, "config/crd/full/llmisvc", ("LLMInferenceService",))
CLOUDNATIVE_PG_CRDS = Definitions(CLOUDNATIVE_PG, "config/crd/bases", ("Cluster", "Backup", "ScheduledBackup"))
DEFINITIONS = (CROSSPLANE_CRDS, PROVIDER_CRDS, KSERVE_CRDS, CLOUDNATIVE_PG_CRDS)
