"""URLs of the portal with the bare view beside it: the same middleware and the same tokens for both."""

from django.urls import include, path

from tests.benchmarks import bare

urlpatterns = [*bare.urlpatterns, path("", include("portal.urls"))]
