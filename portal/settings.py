"""In charge of: what the portal is told from outside. Only it reads environment variables.

Not in charge of: what a kind of value may look like (portal/configuration.py), where embedded servers listen
(portal/running/addresses.py), how log lines look (portal/logs.py).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from portal import configuration as kind
from portal import logs
from portal.configuration import Variable
from portal.database import django_database
from portal.running import addresses
from portal.secret import secret_key

BASE_DIR = Path(__file__).resolve().parent.parent

VARIABLES = (
    Variable(
        "DATABASE_URL",
        kind.address(("postgresql", "postgres"), "postgresql://user:password@host:5432/portal", also=("none",)),
        None,
        "PostgreSQL 15 or later. Not set: an embedded server. `none`: for commands without one",
    ),
    Variable("DATABASE_POOL_SIZE", kind.whole(1, 500), "8", "Most connections that one process opens"),
    Variable("DATABASE_STATEMENT_TIMEOUT", kind.seconds(0.1, 3600), "30", "A statement that takes longer is ended"),
    Variable("DATABASE_LOCK_TIMEOUT", kind.seconds(0.1, 3600), "10", "Waiting longer for a row's lock is an error"),
    Variable(
        "BROKER_URL",
        kind.address(("redis", "rediss", "redis+socket"), "redis://:password@host:6379/0"),
        None,
        "A broker with the Redis protocol. Not set: an embedded Valkey in the state folder",
    ),
    Variable(
        "PORTAL_STATE_DIR", kind.folder(BASE_DIR), "var", "Logs, embedded servers and the generated key live there"
    ),
    Variable(
        "PORTAL_CACHE",
        kind.folder(BASE_DIR),
        None,
        "`manage.py crossplane`: what takes long to build is kept there. Not set: .cache/portal in one's home",
    ),
    Variable(
        "SECRET_KEY",
        kind.text(32),
        None,
        "Signs sessions. Not set: one is made once and kept in the state folder, which is enough for one machine",
        secret=True,
    ),
    Variable(
        "PUBLIC_URL",
        kind.address(("https", "http"), "https://portal.example.org"),
        None,
        "The address that people and Backstage use; else HTTP_BIND and HTTP_PORT. With https cookies need TLS",
    ),
    Variable(
        "ALLOWED_HOSTS",
        kind.words(),
        "localhost,127.0.0.1,[::1]",
        "Host names that are answered; PUBLIC_URL's always is",
    ),
    Variable(
        "BACKSTAGE_URL",
        kind.address(("https", "http"), "https://backstage.example.org"),
        None,
        "Backstage's backend.baseUrl. Its users and plugins may then come in with Backstage's own tokens",
    ),
    Variable(
        "BACKSTAGE_APP_URL",
        kind.address(("https", "http"), "https://backstage.example.org"),
        None,
        "Where people open Backstage, for links to its templates. Not set: BACKSTAGE_URL",
    ),
    Variable(
        "BACKSTAGE_TOKEN",
        kind.text(16),
        None,
        "A static token of Backstage's backend.auth.externalAccess: reads people and groups, sends notifications",
        secret=True,
    ),
    Variable(
        "BACKSTAGE_PLUGINS", kind.words(), "scaffolder", "Backstage plugins whose tokens may act for the user in them"
    ),
    Variable(
        "BACKSTAGE_PERSON_ID",
        kind.text(),
        None,
        "An annotation of User entities that never goes from one person to another. Not set: metadata.uid",
    ),
    Variable("DIRECTORY_TTL_SECONDS", kind.seconds(1, 86400), "300", "So long a person's groups are not read again"),
    Variable(
        "DIRECTORY_STALE_SECONDS",
        kind.seconds(1, 604800),
        "3600",
        "So long they go on as they were last read while Backstage does not answer; then their rights lapse",
    ),
    Variable("DEBUG", kind.switch(), "false", "Django's debug pages. Never where others can reach it"),
    Variable("PORTAL_DEMO", kind.switch(), "false", "The demo's sign-ins, whose passwords are on the screen"),
    Variable("HTTP_BIND", kind.text(), "127.0.0.1", "The interface that `manage.py serve` listens on"),
    Variable("HTTP_PORT", kind.whole(1, 65535), "8000", "The port that `manage.py serve` listens on"),
    Variable("WEB_WORKERS", kind.whole(1, 64), "2", "Web processes"),
    Variable("WORKER_CONCURRENCY", kind.whole(1, 64), "2", "Celery's worker processes"),
    Variable(
        "CONTROL_PLANE",
        kind.choice("embedded", "crossplane", "kubernetes"),
        "embedded",
        "Where claims go by default. `crossplane`: `serve` and `demo` start a real one on this machine (README); "
        "`kubernetes`: those in CONTROL_PLANES",
    ),
    Variable(
        "CONTROL_PLANES",
        kind.clusters(BASE_DIR),
        None,
        "Control planes by the name that Environments use: a kubeconfig (`#` and a context of it, else its current "
        "one), or `in-cluster` for the account of the portal's own pod",
    ),
    Variable(
        "KUBERNETES_WRITES", kind.whole(1, 256), "8", "Most writes per control plane that a process has in flight"
    ),
    Variable("OFFERINGS_PATH", kind.folders(BASE_DIR), "crossplane/apis", "Folders that hold one folder per offering"),
    Variable(
        "FLEET_PATH", kind.folder(BASE_DIR), "crossplane/fleet", "The fleet that the embedded control plane starts with"
    ),
    Variable(
        "FUNCTION_ENDPOINTS",
        kind.mapping("composition-function=127.0.0.1:9443,other=unix:/run/other.sock"),
        None,
        "Composition functions for the embedded control plane; `manage.py serve` adds its own `composition-function`",
    ),
    Variable("OUTBOX_SWEEP_SECONDS", kind.seconds(0.1, 60), "1", "How often due deliveries are looked for"),
    Variable(
        "OUTBOX_LEASE_SECONDS",
        kind.seconds(1, 3600),
        "60",
        "After this time a delivery whose worker died is taken up again",
    ),
    Variable("OUTBOX_MAX_ATTEMPTS", kind.whole(1, 100), "12", "After so many attempts a delivery has failed"),
    Variable(
        "OUTBOX_BACKOFF_SECONDS", kind.seconds(0.01, 60), "1", "Wait after a first failed attempt; it doubles each time"
    ),
    Variable("OUTBOX_BACKOFF_LIMIT_SECONDS", kind.seconds(0.01, 86400), "300", "The longest wait between attempts"),
    Variable(
        "STUCK_AFTER_SECONDS",
        kind.whole(1, 604800, "seconds"),
        "600",
        "What has failed, or has been on its way out, for so long is shown as stuck, with its finalizers if it has any",
    ),
    Variable(
        "EMBEDDED_FAULTS",
        kind.faults(),
        None,
        "Embedded control plane: `fail:NAME,hang:NAME,keep:NAME`: the objects of the claim NAME fail, never report, "
        "or stay when deleted",
    ),
    Variable(
        "SIMULATOR_DELAY", kind.seconds(0, 3600), "1", "Embedded control plane: time until a composed object is up"
    ),
    Variable(
        "REQUEST_BODY_LIMIT", kind.whole(1024, 104857600, "bytes"), "1048576", "A larger body is answered with 413"
    ),
    Variable(
        "LOG_LEVEL",
        kind.choice("DEBUG", "INFO", "WARNING", "ERROR"),
        "INFO",
        "The least important lines that are logged",
    ),
    Variable("LOG_FORMAT", kind.choice("json", "console"), "json", "One JSON object per line, or lines for people"),
)

_given = kind.read(VARIABLES, os.environ)

# --- where things are -------------------------------------------------------------------------------------------------
STATE_DIR: Path = _given["PORTAL_STATE_DIR"]
CACHE_DIR: Path = _given["PORTAL_CACHE"] or Path.home() / ".cache" / "portal"
EMBEDDED_DATABASE = _given["DATABASE_URL"] is None
EMBEDDED_BROKER = _given["BROKER_URL"] is None
DATABASE_URL: str = _given["DATABASE_URL"] or addresses.postgres_url(addresses.postgres_folder(STATE_DIR))
BROKER_URL: str = _given["BROKER_URL"] or addresses.valkey_url(addresses.valkey_folder(STATE_DIR))
HTTP_BIND: str = _given["HTTP_BIND"]
HTTP_PORT: int = _given["HTTP_PORT"]
PUBLIC_URL: str = (_given["PUBLIC_URL"] or addresses.local_url(HTTP_BIND, HTTP_PORT)).rstrip("/")
WEB_WORKERS: int = _given["WEB_WORKERS"]
WORKER_CONCURRENCY: int = _given["WORKER_CONCURRENCY"]

# --- the portal's own -------------------------------------------------------------------------------------------------
DEMO: bool = _given["PORTAL_DEMO"]
CONTROL_PLANE: str = _given["CONTROL_PLANE"]
CONTROL_PLANES: dict[str, str] = _given["CONTROL_PLANES"] or {}  # name -> "path", "path#context" or "in-cluster"
# What an Environment gets that names none; empty when there are several to choose from.
DEFAULT_CONTROL_PLANE: str = (
    CONTROL_PLANE if CONTROL_PLANE != "kubernetes" else next(iter(CONTROL_PLANES)) if len(CONTROL_PLANES) == 1 else ""
)
KUBERNETES_WRITES: int = _given["KUBERNETES_WRITES"]
OFFERINGS_PATH: list[Path] = _given["OFFERINGS_PATH"]
FLEET_PATH: Path = _given["FLEET_PATH"]
FUNCTION_ENDPOINTS: dict[str, str] = _given["FUNCTION_ENDPOINTS"] or {}  # functionRef name -> gRPC address
OUTBOX_SWEEP_SECONDS: float = _given["OUTBOX_SWEEP_SECONDS"]
OUTBOX_LEASE_SECONDS: float = _given["OUTBOX_LEASE_SECONDS"]
OUTBOX_MAX_ATTEMPTS: int = _given["OUTBOX_MAX_ATTEMPTS"]
OUTBOX_BACKOFF_SECONDS: float = _given["OUTBOX_BACKOFF_SECONDS"]
OUTBOX_BACKOFF_LIMIT_SECONDS: float = _given["OUTBOX_BACKOFF_LIMIT_SECONDS"]
STUCK_AFTER_SECONDS: int = _given["STUCK_AFTER_SECONDS"]
EMBEDDED_FAULTS: dict[str, str] = _given["EMBEDDED_FAULTS"] or {}  # name -> "fail", "hang" or "keep"
SIMULATOR_DELAY: float = _given["SIMULATOR_DELAY"]
REQUEST_BODY_LIMIT: int = _given["REQUEST_BODY_LIMIT"]

# --- Backstage --------------------------------------------------------------------------------------------------------
BACKSTAGE_URL: str = (_given["BACKSTAGE_URL"] or "").rstrip("/")  # "": there is none
BACKSTAGE_APP_URL: str = (_given["BACKSTAGE_APP_URL"] or BACKSTAGE_URL).rstrip("/")
BACKSTAGE_TOKEN: str = _given["BACKSTAGE_TOKEN"] or ""
BACKSTAGE_PLUGINS: list[str] = _given["BACKSTAGE_PLUGINS"]
BACKSTAGE_PERSON_ID: str = _given["BACKSTAGE_PERSON_ID"] or ""
DIRECTORY_TTL_SECONDS: float = _given["DIRECTORY_TTL_SECONDS"]
DIRECTORY_STALE_SECONDS: float = _given["DIRECTORY_STALE_SECONDS"]

# --- Django -----------------------------------------------------------------------------------------------------------
DEBUG: bool = _given["DEBUG"]
SECRET_KEY: str = _given["SECRET_KEY"] or secret_key(STATE_DIR)
ALLOWED_HOSTS: list[str] = [*_given["ALLOWED_HOSTS"], kind.host(PUBLIC_URL)]
ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
LANGUAGE_CODE = "en"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "portal",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "portal.middleware.security_headers",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.middleware.body_limit",
    "portal.middleware.no_nul",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "portal" / "web" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "libraries": {"offerings": "portal.web.tags"},
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = django_database(
    DATABASE_URL,
    pool_size=_given["DATABASE_POOL_SIZE"],
    statement_timeout=_given["DATABASE_STATEMENT_TIMEOUT"],
    lock_timeout=_given["DATABASE_LOCK_TIMEOUT"],
)

STATIC_URL = "/static/"
STATICFILES_DIRS = [path for path in [BASE_DIR / "portal" / "web" / "static"] if path.is_dir()]
# Files are served from where the packages keep them: no collectstatic step between a checkout and a running portal.
WHITENOISE_USE_FINDERS = True

LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

_TLS = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _TLS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_HSTS_SECONDS = 31_536_000 if _TLS else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
DATA_UPLOAD_MAX_MEMORY_SIZE = REQUEST_BODY_LIMIT
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1000

LOGGING = logs.configuration(_given["LOG_LEVEL"], _given["LOG_FORMAT"])

# --- the API ----------------------------------------------------------------------------------------------------------
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.authentication.TokenAuthentication",
        "portal.api.authentication.SignedIn",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.parsing.StrictJson"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "portal.api.errors.handler",
    "URL_FORMAT_OVERRIDE": None,  # ?format=… is no parameter of ours: Accept says it
}

SPECTACULAR_SETTINGS = {
    "TITLE": "AI platform portal",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [],  # words that a member may be stay where the member is
}
