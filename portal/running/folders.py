"""In charge of: folders that only one user may enter; sockets without passwords rest on them.

Not in charge of: what is put there.
"""

from __future__ import annotations

import os
from pathlib import Path

from portal.running.errors import NotReady


def make_private(folder: Path, owner: tuple[int, int] | None = None) -> None:
    """Makes the folder, or closes one that is there, for everybody but its owner (uid, gid; None: the caller).

    Raises NotReady for one that somebody else put there: in /tmp everybody can.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    expected = {os.geteuid(), owner[0] if owner else os.geteuid()}
    if folder.is_symlink() or found.st_uid not in expected:
        raise NotReady(f"{folder} is a link or belongs to user {found.st_uid}. Remove it, or set PORTAL_STATE_DIR.")
    folder.chmod(0o700)
    if owner is not None:
        os.chown(folder, *owner)
