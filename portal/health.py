"""In charge of: telling a load balancer or a supervisor whether this process works.

Not in charge of: whether workers, broker or control plane do; the pages and `manage.py serve` show those.
"""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse


def alive(request: HttpRequest) -> JsonResponse:
    """200 as soon as the process answers."""
    return JsonResponse({"status": "ok"})


def ready(request: HttpRequest) -> JsonResponse:
    """200 when the database answers too, 503 otherwise."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "reason": "the database does not answer"}, status=503)
    return JsonResponse({"status": "ok"})
