"""The Celery application: periodic work, run by one worker and one scheduler."""

import os

from celery import Celery

from omniroute_admin import broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omniroute_admin.settings")
broker.install()

app = Celery("omniroute_admin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Celery remembers the current application per thread; a web server's thread would else find one without a broker.
app.set_default()
