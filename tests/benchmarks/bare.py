"""The bare DRF view that the API is compared with: a ModelViewSet over the same rows, without rules and visibility, and
without the decision, stages and votes that the API shows of a request.
"""

from __future__ import annotations

from rest_framework import serializers, viewsets
from rest_framework.pagination import CursorPagination
from rest_framework.parsers import JSONParser
from rest_framework.routers import SimpleRouter

from portal.models import Request


class _Newest(CursorPagination):
    page_size = 50
    ordering = ("-created_at", "-id")


class RequestSerializer(serializers.ModelSerializer):
    class Meta:
        model = Request
        fields = "__all__"


class RequestViewSet(viewsets.ModelViewSet):
    queryset = Request.objects.all()
    serializer_class = RequestSerializer
    pagination_class = _Newest
    parser_classes = [JSONParser]


_router = SimpleRouter()
_router.register("bare", RequestViewSet)
urlpatterns = _router.urls
