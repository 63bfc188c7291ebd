"""Every address of the product."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from ladder.api.pools import ModelListView
from omniroute_admin import health
from omniroute_admin.common.openapi import DocsView, SchemaView
from omniroute_admin.views import audit, key_acts, keys

handler403 = "omniroute_admin.common.views.guard.permission_denied"
handler404 = "omniroute_admin.common.problems.page_not_found"
handler500 = "omniroute_admin.common.problems.server_error"

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", include("billing_catalog.api.urls")),
    path("api/v1/", include("ladder.api.urls")),
    path("v1/models", ModelListView.as_view(), name="models"),
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", DocsView.as_view(), name="docs"),
    path("login", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("", include("billing_catalog.urls")),
    path("keys", keys.keys_page, name="keys"),
    path("keys/new", keys.new_key_page, name="key-new"),
    path("keys/<int:key_id>/edit", key_acts.edit_page, name="key-edit"),
    path("keys/<int:key_id>/rotate", key_acts.rotate_page, name="key-rotate"),
    path("keys/<int:key_id>/revoke", key_acts.revoke_page, name="key-revoke"),
    path("audit", audit.audit_page, name="audit"),
    path("audit.csv", audit.audit_export, {"form": "csv"}, name="audit-csv"),
    path("audit.json", audit.audit_export, {"form": "json"}, name="audit-json"),
    path("audit/<slug:kind>/<int:history_id>", audit.version_page, name="history-version"),
    path("", include("ladder.urls")),
]
