#!/usr/bin/env bash
# Installs one of the lock files into .venv, hashes checked. Usage: requirements/install.sh {embedded|dev}
# Uses the index that pip is told to use, if any; where uv can't reach it, pip does the same more slowly.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
index=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}}
if [ -n "$index" ]; then export UV_DEFAULT_INDEX=$index; fi
.venv/bin/uv pip install --quiet --python "$python" --require-hashes -r "requirements/$1.txt" ||
    "$python" -m pip install --quiet --require-hashes -r "requirements/$1.txt"
