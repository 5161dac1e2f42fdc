"""In charge of: telling a load balancer or a supervisor whether this process works.

Not in charge of: whether workers, broker or control plane do; the pages and `manage.py serve` show those.
"""

from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse

from portal.models import Pause


def alive(request: HttpRequest) -> JsonResponse:
    """200 as soon as the process answers."""
    return JsonResponse({"status": "ok"})


def ready(request: HttpRequest) -> JsonResponse:
    """200 when the database answers too, 503 otherwise. A paused control plane is told, and no reason to take people
    elsewhere: this process works."""
    try:
        paused = list(Pause.objects.order_by("control_plane").values_list("control_plane", flat=True))
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "reason": "the database does not answer"}, status=503)
    return JsonResponse({"status": "ok", **({"paused": paused} if paused else {})})
