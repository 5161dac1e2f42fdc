"""In charge of: what can go wrong while starting and running processes, as text for the person who started them.

RunningError
├── MissingPart       something that has to be installed is not
├── AlreadyRunning    another supervisor has this state folder
├── PortTaken         somebody else listens there
├── NotReady          a process did not come up in time
└── GaveUp            a process ended too often, too fast
"""


class RunningError(Exception):
    """The message says what failed, where to look, and the way out."""


class MissingPart(RunningError):
    """Something that has to be installed is not."""


class AlreadyRunning(RunningError):
    """Another supervisor has this state folder."""


class PortTaken(RunningError):
    """Somebody else listens on the wanted port."""


class NotReady(RunningError):
    """A process did not come up in time, or ended before it did."""


class GaveUp(RunningError):
    """A process ended too often, too fast."""
