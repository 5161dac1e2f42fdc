"""Where a control plane is and who the portal is there: a kubeconfig or a pod's service account.

The official client reads both. In charge of: doing that within a time limit (a kubeconfig may call a
program), and the pool of connections. Not in charge of: when to load it again (client).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import config
from kubernetes.client import ApiClient, Configuration

from portal.ports import RetryableError

LOAD_SECONDS = 30.0
CONNECTIONS = 32  # kept open; more are made when needed


@dataclass(frozen=True, slots=True)
class Access:
    """One loaded set of address and credentials."""

    host: str
    pool: urllib3.PoolManager
    configuration: Any  # kubernetes.client.Configuration

    def headers(self) -> dict[str, str]:
        """What says who we are; a client certificate says it in the connection."""
        found = self.configuration.auth_settings().values()
        headers = {setting["key"]: setting["value"] for setting in found if setting["in"] == "header"}
        if self.configuration.username:
            headers["authorization"] = self.configuration.get_basic_auth_token()
        return headers


def load(plane: str, kubeconfig: Path | None, context: str | None) -> Access:
    """The access that a kubeconfig gives (None: that of the pod we run in). RetryableError
    `control-plane-misconfigured`: somebody may mend the file."""
    where = f"kubeconfig {kubeconfig}" + (f", context {context!r}" if context else "") if kubeconfig else "in-cluster"
    done: list[Access | Exception] = []

    def run() -> None:
        try:
            done.append(_loaded(kubeconfig, context))
        except Exception as error:  # YAML, files, programs: whatever the official client lets through
            done.append(error)

    thread = threading.Thread(target=run, daemon=True, name=f"credentials of {plane}")
    thread.start()
    thread.join(LOAD_SECONDS)
    result = done[0] if done else TimeoutError(f"not within {LOAD_SECONDS:g} s")
    if isinstance(result, Access):
        return result
    raise RetryableError(
        "control-plane-misconfigured",
        f"the access to {plane} ({where}) can't be loaded; whoever runs the portal has to mend it: "
        f"{type(result).__name__}: {result}",
    ) from result


def _loaded(kubeconfig: Path | None, context: str | None) -> Access:
    configuration = Configuration()
    if kubeconfig is None:
        config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]  # published so
    else:
        if not kubeconfig.is_file():
            raise FileNotFoundError(f"there is no file {kubeconfig}")
        config.load_kube_config(  # type: ignore[no-untyped-call]  # published so
            str(kubeconfig), context, configuration, persist_config=False
        )
        # It would run a kubeconfig's program in the middle of a request. A token that has run out is answered with 401,
        # and then everything is loaded again, here.
        configuration.refresh_api_key_hook = None
    configuration.connection_pool_maxsize = CONNECTIONS
    configuration.keep_alive = True
    pool = ApiClient(configuration).rest_client.pool_manager
    return Access(str(configuration.host).rstrip("/"), pool, configuration)
