#!/usr/bin/env bash
# Writes the lock files from pyproject.toml. dev.txt is solved first, the others are held to its versions.
# Usage: requirements/lock.sh UV [--upgrade]. No registry address gets into the files (tests/test_locks.py checks it).
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$1
shift
compile() {
    "$uv" pip compile -q --python-version 3.11 --python-platform linux --generate-hashes --no-emit-index-url --no-emit-find-links \
        --custom-compile-command "make lock" "$@"
}
compile pyproject.toml --extra embedded --extra crossplane --extra dev -o requirements/dev.txt "$@"
compile pyproject.toml --extra embedded -c requirements/dev.txt --no-annotate -o requirements/embedded.txt
compile pyproject.toml --extra embedded --extra crossplane -c requirements/dev.txt --no-annotate -o requirements/crossplane.txt
compile pyproject.toml -c requirements/dev.txt --no-annotate -o requirements/base.txt
printf 'uv\n' | compile - --no-annotate -o requirements/bootstrap.txt "$@"
