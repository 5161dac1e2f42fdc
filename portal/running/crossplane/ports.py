"""In charge of: TCP ports of this machine that are free, the same ones as at the last start where that is possible.

Not in charge of: holding them: between the choice and its use somebody else could take one.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path


def choose(file: Path, names: Iterable[str], first: Mapping[str, int] | None = None) -> dict[str, int]:
    """A free port of 127.0.0.1 for each name. They are kept in `file`, so that kubeconfigs outlive a restart.

    `first` is what is tried for a name that has none yet.
    """
    known = dict(first or {})
    with contextlib.suppress(OSError, ValueError):
        known |= json.loads(file.read_text())
    with contextlib.ExitStack() as held:  # together, so that no two get the same
        found = {name: _free(known.get(name, 0), held) for name in names}
    file.write_text(json.dumps(found, indent=1))
    return found


def _free(wanted: int, held: contextlib.ExitStack) -> int:
    for port in (wanted, 0):
        listener = held.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return int(listener.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")
