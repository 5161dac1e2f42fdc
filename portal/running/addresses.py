"""In charge of: where the embedded servers of a state folder listen; every process works that out for itself.

Not in charge of: starting them (postgres.py, valkey.py). Both listen on Unix sockets only: no port to be taken, and
only the folder's owner may connect.
"""

import contextlib
import hashlib
import tempfile
from pathlib import Path
from urllib.parse import quote

# Linux, unix(7): sun_path holds 108 bytes with the final zero; PostgreSQL's socket is named .s.PGSQL.5432.
LONGEST_SOCKET_PATH = 107
_LONGEST_NAME = len("/.s.PGSQL.5432")
DATABASE = "portal"
EVERY_INTERFACE = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound


def socket_folder(data: Path) -> Path:
    """Where the server that keeps its files in `data` puts its socket: there, or in /tmp if that path is too long."""
    if len(bytes(data)) + _LONGEST_NAME <= LONGEST_SOCKET_PATH:
        return data
    digest = hashlib.sha256(bytes(data)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"portal-{digest}"


def remove_socket_folder(data: Path) -> None:
    """Removes the folder in /tmp, if there is one and nobody listens there any more."""
    if socket_folder(data) != data:
        with contextlib.suppress(OSError):
            socket_folder(data).rmdir()


def postgres_folder(state: Path) -> Path:
    """The folder of a state folder's embedded PostgreSQL."""
    return state / "postgres"


def postgres_url(folder: Path, database: str = DATABASE) -> str:
    """libpq URL of the embedded PostgreSQL in `folder`, whether it runs or not."""
    return f"postgresql://postgres@/{database}?host={quote(str(socket_folder(folder.resolve() / 'data')))}"


def valkey_folder(state: Path) -> Path:
    """The folder of a state folder's embedded Valkey."""
    return state / "valkey"


def valkey_socket(folder: Path) -> Path:
    """The Unix socket of the embedded Valkey in `folder`."""
    return socket_folder(folder.resolve()) / "valkey.sock"


def valkey_url(folder: Path) -> str:
    """Celery's address of the embedded Valkey in `folder`, whether it runs or not."""
    return f"redis+socket://{quote(str(valkey_socket(folder)))}"


def local_url(bind: str, port: int) -> str:
    """Where a client on this machine reaches a server that listens on bind:port; no path."""
    host = "127.0.0.1" if bind in EVERY_INTERFACE else f"[{bind}]" if ":" in bind else bind
    return f"http://{host}:{port}"
