"""The OpenAPI document, and a page that shows it, loading nothing from elsewhere. Open to all: no data is in it."""

from __future__ import annotations

from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny


@extend_schema(exclude=True)
class Schema(SpectacularAPIView):
    """As JSON, or as YAML to those who accept that."""

    authentication_classes = []
    permission_classes = [AllowAny]
    renderer_classes = [OpenApiJsonRenderer, OpenApiYamlRenderer]


@extend_schema(exclude=True)
class Docs(SpectacularSwaggerSplitView):
    """Swagger UI; its script is an address of its own, so that the content security policy needs no exception."""

    authentication_classes = []
    permission_classes = [AllowAny]
    url_name = "api:schema"
