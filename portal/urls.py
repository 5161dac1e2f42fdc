"""In charge of: which door answers which path.

Not in charge of: what is behind a door (portal/api/urls.py, portal/web/urls.py).
"""

from django.contrib import admin
from django.urls import include, path

from portal.health import alive, ready
from portal.web.signin import admin_signin

urlpatterns = [
    path("healthz", alive),
    path("readyz", ready),
    path("admin/login/", admin_signin),
    path("admin/", admin.site.urls),
    path("api/", include("portal.api.urls")),
    path("", include("portal.web.urls")),
]
