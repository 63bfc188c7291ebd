"""Every address of the product."""

from django.contrib import admin
from django.urls import path

from omniroute_admin import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
]
