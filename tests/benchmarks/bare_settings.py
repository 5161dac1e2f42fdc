"""Django, DRF and the bare view on the same database, asking nobody who they are: what a worker is compared with."""

from portal.settings import *  # noqa: F403 - settings are a module of names

INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "rest_framework", "portal"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
ROOT_URLCONF = "tests.benchmarks.bare"
TEMPLATES: list[object] = []
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}
