"""What goes wrong inside the control plane, where it ends up in a condition and not at a caller.

ReconcileError
 |- FunctionError   the composition function could not be called, or did not answer in time
"""

from __future__ import annotations


class ReconcileError(Exception):
    """A composite could not be reconciled; the text becomes the message of its condition Synced."""


class FunctionError(ReconcileError):
    """A composition function could not be called."""
