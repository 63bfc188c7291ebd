"""Every address of the product."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from ladder.api.pools import ModelListView
from omniroute_admin import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", include("billing_catalog.api.urls")),
    path("api/v1/", include("ladder.api.urls")),
    path("v1/models", ModelListView.as_view(), name="models"),
    path("login", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("", include("ladder.urls")),
]
