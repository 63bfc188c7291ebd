"""Settings, all from the environment; .env.example names every variable. A bad value stops the start with its name."""

import os
from pathlib import Path
from typing import Any

from omniroute_admin.alert_channels import alert_channels, public_url, webhook_secret
from omniroute_admin.common.core.periods import DEFAULT_DAYS, LEAST_DAYS, Part, Periods
from omniroute_admin.environment import Environment, usable_folder
from omniroute_admin.environment_sign_in import long_secret, provider, role_mapping
from omniroute_admin.settings_logging import logging
from omniroute_admin.settings_schedule import beat_schedule

env = Environment(os.environ)

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = env.folder("VAR_DIR", BASE_DIR / "var")

DEBUG = env.boolean("DEBUG", default=False)
SECRET_KEY = env.secret_key("SECRET_KEY", VAR_DIR)
# What the doctor looks at: who may read them.
_SECRETS = ("SECRET_KEY", "DATABASE_PASSWORD", "TOTP_KEY", "OIDC_CLIENT_SECRET", "ALERT_WEBHOOK_SECRET")
SECRET_FILES = [str(VAR_DIR / "secret_key"), *(env.text(f"{name}_FILE") for name in _SECRETS)]
# This machine's own names are always allowed: health checks ask there.
ALLOWED_HOSTS = [*env.hosts("ALLOWED_HOSTS"), "localhost", "127.0.0.1", "[::1]"]
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "omniroute_admin",
    "omniroute_admin.common",
    "billing_catalog",
    "ladder",
    "omniroute_admin.common.admin_site.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "simple_history",
    "csp",
]

MIDDLEWARE = [
    # Outermost: it takes the time of everything else.
    "omniroute_admin.common.asked.observing",
    "omniroute_admin.health.HealthUnderAnyName",
    "omniroute_admin.common.problems.ProblemMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # Those of `lean` are what they are named after, and let a router's calls pass by.
    "omniroute_admin.common.lean.Policy",
    "omniroute_admin.common.lean.Sessions",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "omniroute_admin.common.lean.Authentication",
    "omniroute_admin.common.lean.Messages",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "omniroute_admin.common.lean.Htmx",
    "simple_history.middleware.HistoryRequestMiddleware",
    "omniroute_admin.common.keyless.NoKeysInForms",
]

ROOT_URLCONF = "omniroute_admin.urls"
WSGI_APPLICATION = "omniroute_admin.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "omniroute_admin.common.context.reader",
            ]
        },
    }
]

# No ATOMIC_REQUESTS: on SQLite every request would take the write lock.
_DATABASE_FILE = f"sqlite:///{VAR_DIR / 'omniroute_admin.sqlite3'}"
_DATABASE_PASSWORD = env.secret_file("DATABASE_PASSWORD_FILE")
DATABASES = {"default": env.database("DATABASE_URL", _DATABASE_FILE, password=_DATABASE_PASSWORD)}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
# Times are kept and answered in UTC; this zone is for what people read on pages.
TIME_ZONE_DISPLAY = env.zone("TIME_ZONE_DISPLAY")

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = env.folder("STATIC_ROOT", VAR_DIR / "static")
_PLAIN_STATIC = "django.contrib.staticfiles.storage.StaticFilesStorage"
_SERVED_STATIC = "whitenoise.storage.CompressedManifestStaticFilesStorage"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _PLAIN_STATIC if DEBUG else _SERVED_STATIC},
}

# --- who may do what -------------------------------------------------------------------------------------------------
# Signed-in people are read together with the revision: a poll of a live page costs two queries.
AUTHENTICATION_BACKENDS = ["omniroute_admin.common.backends.TokenBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS: list[dict[str, Any]] = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

SECURE_SSL = env.boolean("SECURE_SSL", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = SECURE_SSL
_HSTS_SECONDS = env.integer("HSTS_SECONDS", 31_536_000, lowest=0, highest=63_072_000)
SECURE_HSTS_SECONDS = _HSTS_SECONDS if SECURE_SSL else 0
# A health check asks from inside, without TLS, and so does who collects metrics.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
TRUST_PROXY = env.boolean("TRUST_PROXY", default=False)
if TRUST_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# The host beside this one may be another product's: neither its subdomains nor a browser's list are ours to bind.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_AGE = 7 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
# --- signing in ------------------------------------------------------------------------------------------------------
SESSION_ENGINE = "omniroute_admin.common.sessions"
# A name that browsers take from this host alone, for the whole of it, and over HTTPS.
_COOKIE_PREFIX = "__Host-" if SECURE_SSL else ""
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}sessionid", f"{_COOKIE_PREFIX}csrftoken"
KNOWN_BROWSER_COOKIE_NAME = f"{_COOKIE_PREFIX}known"
SESSION_IDLE_MINUTES = env.integer("SESSION_IDLE_MINUTES", 120, lowest=0, highest=10_080)
LOGIN_FAILURES = env.integer("LOGIN_FAILURES", 5, lowest=3, highest=100)
LOGIN_LOCK_MINUTES = env.integer("LOGIN_LOCK_MINUTES", 15, lowest=1, highest=1_440)
REQUIRE_TOTP = env.boolean("REQUIRE_TOTP", default=False)
TOTP_KEY = long_secret(env, "TOTP_KEY")
OIDC_ISSUER, OIDC_CLIENT_ID = provider(env)
OIDC_CLIENT_SECRET = env.secret("OIDC_CLIENT_SECRET")
OIDC_NAME = env.text("OIDC_NAME", "single sign-on")
OIDC_ROLES_CLAIM = env.text("OIDC_ROLES_CLAIM", "groups")
OIDC_ROLES = role_mapping(env, "OIDC_ROLES")
OIDC_SCOPES = env.text("OIDC_SCOPES", "openid profile email")
OIDC_NEW_ACCOUNTS = env.boolean("OIDC_NEW_ACCOUNTS", default=True)

# --- sizes -----------------------------------------------------------------------------------------------------------
# A bulk call may hold 5,000 items; what is larger is refused before it is read.
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
# How long a body may take to arrive, and how many bytes of bodies one process holds at once.
BODY_SECONDS = env.integer("BODY_SECONDS", 10, lowest=1, highest=600)
BODIES_MAX_BYTES = env.integer("BODIES_MEGABYTES", 64, lowest=32, highest=65_536) * 1024 * 1024

# --- the API ---------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "omniroute_admin.common.authentication.KeyAuthentication",
        "omniroute_admin.common.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["omniroute_admin.common.permissions.RequiresScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    # Answers have one form: `?format=` is a parameter that nobody knows.
    "URL_FORMAT_OVERRIDE": None,
    "EXCEPTION_HANDLER": "omniroute_admin.common.problems.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
# A reason may be a page long; the package's own column ends at 100 characters.
SIMPLE_HISTORY_HISTORY_CHANGE_REASON_USE_TEXT_FIELD = True

SPECTACULAR_SETTINGS = {
    "TITLE": "omniroute_admin",
    "DESCRIPTION": "Control plane for subscription-first routing: pools for routers, live quota, spend, and why.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": r"/(api/)?v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "omniroute_admin.common.openapi_calls.describe_refusals",
        "omniroute_admin.common.openapi_calls.close_bodies",
        "omniroute_admin.common.openapi_calls.bound_queries",
        "omniroute_admin.common.openapi_calls.add_links",
        "omniroute_admin.common.openapi.loosen_choices",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    # Words that several fields share have one name in the schema.
    "ENUM_NAME_OVERRIDES": {
        "RungWord": "ladder.api.documents.RUNGS",
        "ReasonCode": "ladder.api.documents.REASON_CODES",
        "EmptyReason": "ladder.api.documents.EMPTY_CODES",
        "CooldownWord": "ladder.choices.CAUSE_CHOICES",
        "OverageWord": "billing_catalog.choices.OVERAGE_CHOICES",
        "BillingWord": "billing_catalog.choices.BILLING_CHOICES",
    },
}

# --- periodic work ---------------------------------------------------------------------------------------------------
CELERY_BROKER_URL = env.broker("CELERY_BROKER_URL")
CELERY_TASK_DEFAULT_QUEUE = "omniroute_admin"
CELERY_TASK_IGNORE_RESULT = True
CELERY_ENABLE_UTC = True
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
if CELERY_BROKER_URL.startswith("filesystem:"):
    _messages = usable_folder(VAR_DIR / "broker" / "messages", "VAR_DIR")
    _control = usable_folder(VAR_DIR / "broker" / "control", "VAR_DIR")
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_messages),
        "data_folder_out": str(_messages),
        "control_folder": str(_control),
        "polling_interval": 0.2,
    }
    # Remote control answers into queues that nobody empties here: their files would pile up.
    CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
HEARTBEAT_SECONDS = env.integer("HEARTBEAT_SECONDS", 20, lowest=1, highest=300)
# It looks this often at least whether the clock was set back.
CELERY_BEAT_SCHEDULER = "omniroute_admin.scheduler:Scheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = 5
# A broker that is away for a day is waited for.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "celerybeat-schedule")
CELERY_BEAT_SCHEDULE = beat_schedule(heartbeat_seconds=HEARTBEAT_SECONDS)

# --- metrics ---------------------------------------------------------------------------------------------------------
# Where the processes of this machine count together. Left out it is in VAR_DIR; one that is named must be usable.
METRICS_DIR = env.folder("METRICS_DIR", VAR_DIR / "metrics")
if METRICS_DIR != VAR_DIR / "metrics":
    usable_folder(METRICS_DIR, "METRICS_DIR")
METRICS_CONNECTIONS_AT_MOST = env.integer("METRICS_CONNECTIONS_AT_MOST", 1000, lowest=0, highest=1_000_000)


# --- retention -------------------------------------------------------------------------------------------------------
def _keep_days(name: str, part: Part) -> int:
    return env.days(name, DEFAULT_DAYS[part], lowest=LEAST_DAYS[part])


KEEP = Periods(
    readings=_keep_days("KEEP_READINGS_DAYS", Part.READINGS),
    history=_keep_days("KEEP_HISTORY_DAYS", Part.HISTORY),
    ledger=_keep_days("KEEP_LEDGER_DAYS", Part.LEDGER),
    audit=_keep_days("KEEP_AUDIT_DAYS", Part.AUDIT),
)

# --- alerts ----------------------------------------------------------------------------------------------------------
# Where alerts go: a rule names a channel, and only the environment knows its address, which may hold a secret.
ALERT_CHANNELS = alert_channels(env)
ALERT_WEBHOOK_SECRET = webhook_secret(env, channels=ALERT_CHANNELS.values())
PUBLIC_URL = public_url(env)

# --- logs ------------------------------------------------------------------------------------------------------------
LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
# `json` for what collects logs; the web server and the supervisor follow it too.
LOG_FORMAT = env.choice("LOG_FORMAT", "LINE", ["LINE", "JSON"]).lower()
# A line for each request, whatever the level of the others.
ACCESS_LOG = env.boolean("ACCESS_LOG", default=False)
LOGGING = logging(level=LOG_LEVEL, form=LOG_FORMAT)

# --- what no traceback and no denial tells ----------------------------------------------------------------------------
CSRF_FAILURE_VIEW = "omniroute_admin.common.views.guard.csrf_failure"
DEFAULT_EXCEPTION_REPORTER = "omniroute_admin.common.tracebacks.BlottingReporter"
