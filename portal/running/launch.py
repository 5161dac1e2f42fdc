"""Runs a command that ends with the process that started it, however that one ends: `launch.py PARENT COMMAND…`.

A program of its own, because between fork and exec in a process with threads nothing but exec is safe. It is run with
`-I -S` and imports next to nothing: it costs a few milliseconds.

Not in charge of: grandchildren (Celery's and gunicorn's watch their parents themselves).
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Asks the kernel for SIGKILL at the parent's end, then becomes the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"launch.py: prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # it died before the kernel was asked
        sys.exit("launch.py: the parent has gone")
    os.execvp(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
