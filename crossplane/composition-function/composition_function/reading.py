"""Other objects as they come over the wire -> dicts, each version of an object only once.

A call is handed every claim of its kind. Most are the same as in the last call, so what was made of them is kept by uid
and resourceVersion: with 500 claims this is most of a call's time. What is kept must not be changed by who reads it.
"""

from typing import Any

from crossplane.function import resource
from google.protobuf import struct_pb2 as structpb

from composition_function.contract import Manifest

_APPROVAL = "portal.aiplatform.example.org/approval"  # signed, and long: each claim judges its own

# Parts of other objects that no decision looks at, and that are most of their size.
_UNREAD = (
    ("metadata", "managedFields"),
    ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"),
    ("metadata", "annotations", _APPROVAL),
    ("status", "placement", "reasons"),
    ("status", "atProvider", "manifest", "metadata", "managedFields"),
    ("status", "atProvider", "manifest", "metadata", "annotations"),
    ("status", "atProvider", "manifest", "status", "images"),
)
_MANY = 20_000


class Versions:
    """Objects by uid, in the version last read."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, Manifest]] = {}

    def read(self, source: structpb.Struct) -> Manifest:
        """An object as a dict, without what is not read of it. The same version gives the same dict."""
        meta = _at(source, "metadata")
        uid, version = (_text(meta, key) for key in ("uid", "resourceVersion"))
        if not uid or not version:
            return light(source)
        kept = self._found.get(uid)
        if kept is not None and kept[0] == version:
            return kept[1]
        if len(self._found) > _MANY:
            self._found.clear()
        found = light(source)
        self._found[uid] = (version, found)
        return found


def light(source: structpb.Struct) -> Manifest:
    """An object as a dict, without what is not read of it."""
    for *path, last in _UNREAD:
        node = source
        for step in path:
            node = _at(node, step)
        node.fields.pop(last, None)
    found: Manifest = resource.struct_to_dict(source)
    return found


def _at(source: structpb.Struct, key: str) -> Any:
    # Looking a key up would add it.
    return source.fields[key].struct_value if key in source.fields else structpb.Struct()


def _text(source: structpb.Struct, key: str) -> str:
    return source.fields[key].string_value if key in source.fields else ""
