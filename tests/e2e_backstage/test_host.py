"""The Backstage backend of this machine: who may sign in, who is in its catalog, and who can reach it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path

import httpx
import jwt
import pytest
from django.conf import settings

from portal.running.backstage import install, plan
from portal.running.backstage.node import node_in
from tests.backstage import Town, until

LOOPBACK = "0100007F"  # 127.0.0.1 in /proc/net/tcp


def test_people_get_real_tokens_of_the_auth_backend(town: Town) -> None:
    token = town.backend.token("ada")
    assert jwt.get_unverified_header(token)["typ"] == "vnd.backstage.user"
    keys = jwt.PyJWKClient(f"{town.backend.url}/api/auth/.well-known/jwks.json")
    claims = jwt.decode(token, keys.get_signing_key_from_jwt(token), algorithms=["ES256"], audience="backstage")
    assert claims["sub"] == "user:default/ada"


@pytest.mark.parametrize(
    ("header", "status"),
    [
        pytest.param({"x-local-user": "mallory"}, 404, id="not in the catalog"),
        pytest.param({"x-local-user": "catalog-service"}, 404, id="a service is no person"),
        pytest.param({}, 401, id="no name"),
    ],
)
def test_others_get_none(town: Town, header: dict[str, str], status: int) -> None:
    answer = httpx.get(f"{town.backend.url}/api/auth/local/refresh", headers=header, timeout=10)
    assert answer.status_code == status, answer.text
    assert "token" not in answer.json()


def test_the_catalog_has_the_people_and_teams_of_the_sample(town: Town) -> None:
    related = lambda ref, kind: {  # noqa: E731
        relation["targetRef"].removeprefix("group:default/")
        for relation in town.backend.get("portal", f"catalog/entities/by-name/{ref}")["relations"]
        if relation["type"] == kind
    }
    until(lambda: related("user/default/erin", "memberOf") == {"search", "platform-approvers"}, "her groups")
    until(lambda: related("group/default/acme", "parentOf") == {"search", "ads", "research"}, "the teams below")


def test_the_portals_token_opens_no_other_door(town: Town) -> None:
    assert town.backend.call("portal", "GET", "catalog/entities/by-query?limit=1").status_code == 200
    assert town.backend.call("portal", "GET", "scaffolder/v2/tasks").status_code == 403


def test_it_listens_on_this_machine_only(town: Town) -> None:
    assert town.backend.running is not None
    [pid] = town.backend.running.supervisor.pids().values()
    sockets = {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()}
    rows = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().split("\n")
    ]
    own = [row for row in rows[1:] if len(row) > 9 and row[3] == "0A" and f"socket:[{row[9]}]" in sockets]
    assert [row[1].split(":")[0] for row in own] == [LOOPBACK]


def test_its_sign_in_refuses_an_address_that_others_reach(town: Town, tmp_path: Path) -> None:
    folder = install.built(settings.CACHE_DIR, print)
    (tmp_path / "wide-open.yaml").write_text("backend: {listen: {host: 0.0.0.0, port: 0}}\n")
    own = town.backend.options
    options = dataclasses.replace(own, state=tmp_path, database_prefix=f"{own.database_prefix}refused_")
    command = [str(node_in(folder.parent)), "--no-node-snapshot", "index.mjs", "--config", "app-config.yaml"]
    done = subprocess.run(
        [*command, "--config", str(tmp_path / "wide-open.yaml")],
        cwd=folder,
        env={**os.environ, **plan.environment_of(options, town.backend.at)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "local sign-in: backend.listen.host is 0.0.0.0" in done.stdout + done.stderr
