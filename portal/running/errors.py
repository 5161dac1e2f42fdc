"""In charge of: what can go wrong while starting and running processes, as text for the person who started them.

RunningError
├── MissingPart       something that has to be installed is not
├── AlreadyRunning    another supervisor has this state folder
├── PortTaken         somebody else listens there
├── Unreachable       a database or broker that somebody else runs does not answer
├── NoTables          a database that the portal has not been set up in
├── NotReady          a process did not come up in time
├── GaveUp            a process ended too often, too fast
├── BuildFailed       a program of another project could not be built, or is not what it was
└── ApiError          an API server refused, or did not answer
"""


class RunningError(Exception):
    """The message says what failed, where to look, and the way out."""


class MissingPart(RunningError):
    """Something that has to be installed is not."""


class AlreadyRunning(RunningError):
    """Another supervisor has this state folder."""


class PortTaken(RunningError):
    """Somebody else listens on the wanted port."""


class Unreachable(RunningError):
    """A database or broker that somebody else runs does not answer."""


class NoTables(RunningError):
    """A database that the portal has not been set up in, or not in its newest form."""


class NotReady(RunningError):
    """A process did not come up in time, or ended before it did."""


class GaveUp(RunningError):
    """A process ended too often, too fast."""


class BuildFailed(RunningError):
    """A program of another project could not be built, or its source is not what it was."""


class ApiError(RunningError):
    """An API server refused, or did not answer. `status` is HTTP's, None without an answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
