"""In charge of: Crossplane's core, this project's composition function, provider-kubernetes and the actor, as programs.

Not in charge of: the servers below them (servers.py), or the objects they need (install.py).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from portal.running.crossplane import crds, probes
from portal.running.crossplane.layout import CONTROL_PLANE, MANIFESTS, ROOT, Layout
from portal.running.crossplane.parts import CROSSPLANE_CRDS
from portal.running.errors import NotReady
from portal.running.program import Program
from portal.running.ready import announced
from portal.running.valkey import launch_command

CORE, FUNCTION, PROVIDER, ACTOR = "crossplane", "composition-function", "provider-kubernetes", "workload-actor"
ROOT_AUTHORITY, CLIENT_CERTIFICATE = "crossplane-root-ca", "crossplane-tls-client"
PORTS = ("crossplane-health", FUNCTION, PROVIDER)
INIT_ATTEMPTS = 5
# On a laptop its default of 100 keeps the API server so busy in a burst that the core's own cache falls behind what it
# writes, and claims are composed from what they were seconds ago.
RECONCILES_AT_ONCE = 24
# The core's brake on loops takes two tokens for each update that it sees of a claim or of what was composed for it, and
# by default has 100 and gets back one a second. A database that comes up takes about 75 (seen with v2.2.1): what is
# changed right after it would wait for up to half a minute a step.
CIRCUIT_BURST, CIRCUIT_REFILL = 1_000, 10
# The provider looks at every object that often, at most 100 a second. What runs is watched besides; what is not are
# nodes. At 10 s, 500 claims kept it so busy that new ones waited minutes.
LOOKS_EVERY = "30s"


def initialise(layout: Layout, binary: Path, cache: Path, environment: Mapping[str, str]) -> None:
    """`crossplane core init`: its CRDs, its certificates. Raises NotReady with what it said."""
    certificates = {
        "TLS_CA_SECRET_NAME": ROOT_AUTHORITY,
        "TLS_CLIENT_SECRET_NAME": CLIENT_CERTIFICATE,
        "TLS_SERVER_SECRET_NAME": "crossplane-tls-server",
    }
    own = {**_core_environment(layout), **certificates, "CRDS_PATH": str(crds.folder(CROSSPLANE_CRDS, cache))}
    said = ""
    for attempt in range(INIT_ATTEMPTS):
        # It applies its CRDs and at once an object of one of them, which may not be served yet: again.
        time.sleep(0.5 if attempt else 0)
        done = subprocess.run(
            launch_command([str(binary), "core", "init"]),
            env={**environment, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return
        said = done.stdout
    raise NotReady(f"crossplane core init failed {INIT_ATTEMPTS} times. It said:\n{said[-2000:]}")


def controller_programs(
    layout: Layout,
    binaries: Mapping[str, Path],
    ports: Mapping[str, int],
    clusters: Sequence[str],
    *,
    actor: bool,
    approvals: str,
) -> list[Program]:
    """The core, the function and the provider start together, and wait for each other by themselves."""
    programs = [
        _core(layout, binaries[CORE], ports["crossplane-health"]),
        _function(layout, ports[FUNCTION], approvals),
        _provider(layout, binaries[PROVIDER], ports[PROVIDER]),
    ]
    return [*programs, _actor(layout, clusters)] if actor else programs


def function_endpoint(ports: Mapping[str, int]) -> str:
    """Where the core finds the function."""
    return f"dns:///localhost:{ports[FUNCTION]}"


def _core_environment(layout: Layout) -> dict[str, str]:
    return {"KUBECONFIG": str(layout.kubeconfig(CONTROL_PLANE, CORE)), "ENABLE_WEBHOOKS": "false"}


def _core(layout: Layout, binary: Path, health: int) -> Program:
    packages = layout.state / "packages"
    packages.mkdir(exist_ok=True)
    command = [
        str(binary),
        "core",
        "start",
        "--package-runtime=External",
        f"--xpkg-cache-dir={packages}",
        f"--health-probe-port={health}",
        "--metrics-port=0",  # any free one
        f"--max-reconcile-rate={RECONCILES_AT_ONCE}",
        f"--circuit-breaker-burst={CIRCUIT_BURST}",
        f"--circuit-breaker-refill-rate={CIRCUIT_REFILL}",
    ]
    environment = {**_core_environment(layout), "TLS_CLIENT_CERTS_DIR": str(layout.core_tls)}
    return Program(CORE, command, lambda pid: probes.healthy(health, "/readyz"), stage=0, environment=environment)


def _function(layout: Layout, port: int, approvals: str) -> Program:
    command = [sys.executable, "-m", "composition_function", "--approvals", approvals]
    command += ["--address", f"localhost:{port}", "--tls-certs-dir", str(layout.function_tls)]
    folder = MANIFESTS / FUNCTION
    return Program(FUNCTION, command, lambda pid: probes.accepts(port), stage=0, folder=folder, stop_seconds=5)


def _provider(layout: Layout, binary: Path, port: int) -> Program:
    environment = {
        "KUBECONFIG": str(layout.kubeconfig(CONTROL_PLANE, PROVIDER)),
        "WEBHOOK_TLS_CERT_DIR": str(layout.pki),  # a conversion webhook that nobody calls wants a certificate
        "WEBHOOK_PORT": str(port),
    }
    command = [str(binary), "--enable-watches", f"--poll={LOOKS_EVERY}"]
    return Program(PROVIDER, command, lambda pid: probes.accepts(port), stage=0, environment=environment)


def _actor(layout: Layout, clusters: Sequence[str]) -> Program:
    command = [sys.executable, "-m", "portal.running.crossplane.actor", "--state", str(layout.state), *clusters]
    return Program(ACTOR, command, partial(announced, layout.state, ACTOR), stage=0, folder=ROOT, stop_seconds=5)
