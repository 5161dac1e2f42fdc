"""In charge of: bringing up a control plane and its workload clusters on one machine, and taking them down.

    etcd -> API servers (claims; one per workload cluster) -> garbage collector
        -> CRDs, certificates -> Crossplane core, composition function, provider-kubernetes, actor
        -> XRDs, Compositions, the portal's role -> fleet: Ready

Objects outlive the end: the next start finds them. Not in charge of: the portal (portal/running/plan.py).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from portal.running import folders, leftovers
from portal.running.crossplane import access, authority, build, controllers, install, ports, servers
from portal.running.crossplane.kube import Api
from portal.running.crossplane.layout import CONTROL_PLANE, CORE_NAMESPACE, PORTAL_ACCOUNT, Layout
from portal.running.supervisor import Supervisor

CLUSTERS = ("eu-central-1", "eu-west-1")  # of the sample fleet (crossplane/fleet)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What is started. `state` is a folder of its own."""

    state: Path
    cache: Path  # where built programs are kept
    clusters: tuple[str, ...] = CLUSTERS
    actor: bool = True  # somebody plays the operators of the workload clusters
    approvals: str = "enforce"  # or "warn": what the composition function does about claims without an approval
    verbose: bool = False


@dataclass(frozen=True)
class LocalControlPlane:
    """A control plane that runs."""

    layout: Layout
    servers: Mapping[str, access.Server]  # as administrator; the control plane and each workload cluster
    supervisors: tuple[Supervisor, Supervisor]  # of the servers, and of what watches them

    @property
    def kubeconfig(self) -> Path:
        """With the portal's rights."""
        return self.layout.portal_kubeconfig

    def pids(self) -> dict[str, int]:
        """The process id of each program."""
        return {name: pid for supervisor in self.supervisors for name, pid in supervisor.pids().items()}

    def memory(self) -> dict[str, float]:
        """Resident memory of each program in MB (10^6 bytes)."""
        return {name: found for name, pid in self.pids().items() if (found := _resident(pid)) is not None}

    def wait(self, seconds: float | None = None) -> None:
        """Until somebody stops it, or `seconds` have passed. Raises RunningError when it gave up."""
        self.supervisors[1].wait(seconds)


@contextlib.contextmanager
def running_control_plane(options: Options, say: Say = lambda line: None) -> Iterator[LocalControlPlane]:
    """A control plane for the time of the block; what is missing is built first. Raises RunningError."""
    binaries = build.built(options.cache, say)
    layout = Layout(options.state.resolve())
    folders.make_private(layout.state)
    with leftovers.own_folder(layout.state, "a control plane", say), contextlib.ExitStack() as stack:
        names = [*servers.ports_needed(options.clusters), *controllers.PORTS]
        numbers = ports.choose(layout.state / "run" / "ports.json", names)
        reached = _access(layout, numbers, options)
        environment = {**os.environ, **leftovers.mark(layout.state), "PYTHONUNBUFFERED": "1"}
        supervised = partial(Supervisor, layout.state, environment=environment, say=say, verbose=options.verbose)

        below = supervised(servers.server_programs(layout, binaries, numbers, options.clusters))
        stack.enter_context(below)
        apis = {name: stack.enter_context(Api(server)) for name, server in reached.items()}
        _before(layout, apis, binaries, numbers, environment, options.cache)
        say("Crossplane is initialised")

        programs = controllers.controller_programs(
            layout, binaries, numbers, options.clusters, actor=options.actor, approvals=options.approvals
        )
        above = supervised(programs, also=lambda: below.wait(0))  # gives up when the servers have
        stack.enter_context(above)
        _after(layout, apis, options)
        say(f"the fleet is ready: {', '.join(options.clusters)}")
        yield LocalControlPlane(layout, reached, (below, above))


def _access(layout: Layout, numbers: Mapping[str, int], options: Options) -> dict[str, access.Server]:
    """Certificates, tokens and kubeconfigs. Returns how each API server is reached by an administrator."""
    own = authority.authority_in(layout.pki)
    own.issue(layout.pki, "local")
    authority.signing_key(layout.pki / "service-accounts.key")
    administrators = [servers.CONTROLLER_MANAGER, controllers.CORE, controllers.PROVIDER]
    found = {}
    for name in (CONTROL_PLANE, *options.clusters):
        masters = ["admin", *(administrators if name == CONTROL_PLANE else [controllers.PROVIDER])]
        users = {user: [access.MASTERS] for user in masters}
        if name != CONTROL_PLANE:
            users[controllers.ACTOR] = []
        tokens = access.tokens_in(layout.tokens(name), users)
        for user, token in tokens.items():
            url = f"https://127.0.0.1:{numbers[name]}"
            server = access.Server(name, url, own.certificate.decode(), user, token)
            authority.write_private(layout.kubeconfig(name, user), access.kubeconfig(server).encode())
        found[name] = access.server_from(layout.kubeconfig(name))
    return found


def _before(
    layout: Layout,
    apis: Mapping[str, Api],
    binaries: Mapping[str, Path],
    numbers: Mapping[str, int],
    environment: Mapping[str, str],
    cache: Path,
) -> None:
    """What has to be there before Crossplane starts; the workload clusters are filled meanwhile."""
    api = apis[CONTROL_PLANE]
    with ThreadPoolExecutor(len(apis)) as pool:
        clusters = [name for name in apis if name != CONTROL_PLANE]
        others = [pool.submit(install.workload_cluster, apis[name], name, cache) for name in clusters]
        install.namespace(api, CORE_NAMESPACE)
        others.append(pool.submit(install.provider_definitions, api, cache))
        controllers.initialise(layout, binaries[controllers.CORE], cache, environment)
        install.certificates(api, layout)
        install.function(api, controllers.function_endpoint(numbers))
        for other in others:
            other.result()


def _after(layout: Layout, apis: Mapping[str, Api], options: Options) -> None:
    """This project's manifests, once Crossplane runs."""
    api = apis[CONTROL_PLANE]
    token = install.portal_role(api)
    server = access.Server(CONTROL_PLANE, api.server.url, api.server.authority, ".".join(PORTAL_ACCOUNT), token)
    authority.write_private(layout.portal_kubeconfig, access.kubeconfig(server).encode())
    install.apis(api)
    reached = [access.server_from(layout.kubeconfig(name, controllers.PROVIDER)) for name in options.clusters]
    install.fleet(api, reached)


def _resident(pid: int) -> float | None:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6
    return None
