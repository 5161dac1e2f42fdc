"""In charge of: which door answers which path.

Not in charge of: what is behind a door (portal/api/urls.py, portal/web/urls.py).
"""

from importlib.util import find_spec

from django.contrib import admin
from django.urls import include, path

from portal.health import alive, ready

urlpatterns = [
    path("healthz", alive),
    path("readyz", ready),
    path("admin/", admin.site.urls),
]
if find_spec("portal.api") and find_spec("portal.api.urls"):
    urlpatterns.append(path("api/", include("portal.api.urls")))
if find_spec("portal.web") and find_spec("portal.web.urls"):
    urlpatterns.append(path("", include("portal.web.urls")))
