"""In charge of: the key that a state folder keeps for itself when nobody gives one.

Not in charge of: where it is used (portal/settings.py).
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from portal.configuration import ConfigurationError


def secret_key(state: Path) -> str:
    """The key in `state`/secret-key, made at the first call, readable by its owner alone.

    Several processes may ask at once: all get the one that was written first. Raises ConfigurationError when the
    folder can't be written or the file holds no key.
    """
    path = state / "secret-key"
    try:
        if not path.exists():
            state.mkdir(parents=True, exist_ok=True)
            draft = state / f".secret-key-{os.getpid()}-{secrets.token_hex(4)}"
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(48))
            try:
                os.link(draft, path)  # fails when another process was first: then its key is the key
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        key = path.read_text().strip()
    except OSError as error:
        raise ConfigurationError(
            f"SECRET_KEY is not set, and none can be kept in PORTAL_STATE_DIR={str(state)!r}: {error.strerror}. "
            "Set SECRET_KEY to 32 characters or more, or PORTAL_STATE_DIR to a folder that can be written."
        ) from error
    if len(key) < 32:
        raise ConfigurationError(
            f"{path} holds fewer than 32 characters. Remove it to get a new key, or set SECRET_KEY."
        )
    return key
