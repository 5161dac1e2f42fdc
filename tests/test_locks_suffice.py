"""What a lock file installs is enough for what runs from it: some packages import others without declaring them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[1]
FUNCTION = ROOT / "crossplane" / "composition-function"

PORTAL = """
import django
from django.core.management import call_command
django.setup()
import kombu.transport.redis, celery.bin.worker, celery.beat, celery.concurrency.prefork
from portal.celery import app
assert app.connection_for_write().transport.driver_type == "redis"
import portal.tasks, portal.wsgi, portal.mirroring, portal.adapters
import gunicorn.app.wsgiapp, gunicorn.workers.gthread, portal.running.web, portal.running.plan
import importlib, pkgutil, portal.management.commands as commands
for module in pkgutil.iter_modules(commands.__path__):
    if not module.name.startswith(("crossplane", "embedded_")):  # not in base
        importlib.import_module(f"portal.management.commands.{module.name}")
call_command("check")
"""
EMBEDDED = """
import portal.adapters as adapters
for module in pkgutil.walk_packages(adapters.__path__, "portal.adapters."):
    importlib.import_module(module.name)
from portal.running import postgres, valkey
assert postgres._program("postgres") and valkey._program()
import portal.management.commands.embedded_apply, portal.management.commands.embedded_control_plane
import composition_function.__main__
"""


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        pytest.skip("uv is not installed")
    return found


@pytest.mark.parametrize(
    ("lock", "code"),
    [
        pytest.param("base", PORTAL, id="base"),
        pytest.param("embedded", PORTAL + EMBEDDED, id="embedded"),
    ],
)
def test_everything_imports_with_nothing_but_the_lock_installed(tmp_path: Path, lock: str, code: str) -> None:
    uv, python = _uv(), tmp_path / "venv" / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], check=True)
    install = [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes"]
    subprocess.run([*install, "-r", ROOT / "requirements" / f"{lock}.txt"], check=True)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{FUNCTION}",
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "PORTAL_STATE_DIR": str(tmp_path / "state"),
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "BROKER_URL": "redis://127.0.0.1:1/0",
    }
    done = subprocess.run([python, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
