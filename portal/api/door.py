"""What all endpoints have in common: who may come in, how bodies are read, how errors leave.

In charge of: the order (measure the body, find out who it is, check the scope). Not in charge of: any one endpoint.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.api.authentication import SignedIn, TokenAuthentication, actor_of
from portal.api.errors import BadRequest
from portal.api.parsing import StrictJson, measure
from portal.services.access import Actor

READING = {"GET", "HEAD"}


class Door(APIView):
    """One endpoint for people and machines. Reading needs the scope `reading`; writing, what its service says."""

    authentication_classes = [TokenAuthentication, SignedIn]
    permission_classes = [IsAuthenticated]
    parser_classes = [StrictJson]
    renderer_classes = [JSONRenderer]
    metadata_class = None  # OPTIONS is answered 405: the OpenAPI document says what there is
    reading: ClassVar[str] = "read"

    actor: Actor

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        measure(request._request)
        super().initial(request, *args, **kwargs)
        self.actor = actor_of(request)
        if request.method in READING and self.reading:
            self.actor.needs(self.reading)


class NothingHere(APIView):
    """Answers 404 to every path and verb that nothing else answers."""

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]
    renderer_classes = [JSONRenderer]
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        hint = "" if request.path.endswith("/") else f" Paths end in a slash: {request.path[:200]}/."
        raise BadRequest("not-found", f"There is nothing at {request.path[:200]}.{hint} See /api/v1/.", 404)
