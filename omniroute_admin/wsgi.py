"""The WSGI entry point of the web server, warmed up before the first request."""

import gc
import os

from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application
from django.urls import resolve

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omniroute_admin.settings")


def _warmed_up() -> WSGIHandler:
    made = get_wsgi_application()
    # Resolving one address imports every view.
    resolve("/healthz")
    gc.collect()
    # What is loaded now stays for good: the collector need not walk through it in the middle of a request.
    gc.freeze()
    return made


application = _warmed_up()
