"""What the OpenAPI document says of each endpoint: shapes and examples. Documentation only: nothing is serialized
by it.

A test holds real answers against these shapes, so that the two can't drift apart.
"""

from portal.api.schemas import security

__all__ = ["security"]
