"""The OpenAPI document, and a page that shows it, loading nothing from elsewhere. Open to all: no data is in it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2, OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny


class OneDocument(SchemaGenerator):
    """Made once per process: it is the same for everybody, and anybody may ask for it."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        return _document()


@lru_cache(maxsize=1)
def _document() -> Any:
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]  # no types published


@extend_schema(exclude=True)
class Schema(SpectacularAPIView):
    """As JSON, or as YAML to those who accept that."""

    authentication_classes = []
    permission_classes = [AllowAny]
    renderer_classes = [OpenApiJsonRenderer2, OpenApiJsonRenderer, OpenApiYamlRenderer]
    generator_class = OneDocument


@extend_schema(exclude=True)
class Docs(SpectacularSwaggerSplitView):
    """Swagger UI; its script is an address of its own, so that the content security policy needs no exception."""

    authentication_classes = []
    permission_classes = [AllowAny]
    url_name = "api:schema"
