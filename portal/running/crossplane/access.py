"""In charge of: who may come to which API server: token files, and kubeconfigs.

Everybody has a name and a token of their own, so that managed fields and audit say who did it. Not in charge of: what
they may do (RBAC: install.py and crossplane/rbac).
"""

from __future__ import annotations

import base64
import csv
import io
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from portal.running.crossplane.authority import write_private

MASTERS = "system:masters"  # may do everything, whatever RBAC says


@dataclass(frozen=True)
class Server:
    """How an API server is reached by somebody."""

    name: str
    url: str
    authority: str  # PEM
    user: str
    token: str


def tokens_in(path: Path, users: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Tokens by user, for users with their groups; written where kube-apiserver's --token-auth-file reads them.

    They are other ones after each start.
    """
    tokens = {user: secrets.token_urlsafe(32) for user in users}
    lines = io.StringIO()
    writer = csv.writer(lines)
    for user, groups in users.items():
        writer.writerow([tokens[user], user, user, ",".join(groups)])
    write_private(path, lines.getvalue().encode())
    return tokens


def kubeconfig(server: Server) -> str:
    """The YAML of a kubeconfig with everything in it."""
    authority = base64.b64encode(server.authority.encode()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": server.name, "cluster": {"server": server.url, "certificate-authority-data": authority}}],
        "users": [{"name": server.user, "user": {"token": server.token}}],
        "contexts": [{"name": server.name, "context": {"cluster": server.name, "user": server.user}}],
        "current-context": server.name,
    }
    return yaml.safe_dump(content, sort_keys=False)


def server_from(path: Path) -> Server:
    """What `kubeconfig` wrote into a file, read back."""
    content = yaml.safe_load(path.read_text())
    cluster, user = content["clusters"][0], content["users"][0]
    authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    return Server(cluster["name"], cluster["cluster"]["server"], authority, user["name"], user["user"]["token"])
