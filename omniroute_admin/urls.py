"""Every address of the product."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from ladder.api.pools import ModelListView
from omniroute_admin import health
from omniroute_admin.common.openapi import DocsView, SchemaView
from omniroute_admin.views import account, accounts, audit, key_acts, keys, metrics, sign_in, sso

handler403 = "omniroute_admin.common.views.guard.permission_denied"
handler404 = "omniroute_admin.common.problems.page_not_found"
handler500 = "omniroute_admin.common.problems.server_error"

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.MetricsView.as_view(), name="metrics"),
    path("api/v1/", include("billing_catalog.api.urls")),
    path("api/v1/", include("ladder.api.urls")),
    path("v1/models", ModelListView.as_view(), name="models"),
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", DocsView.as_view(), name="docs"),
    path("login", sign_in.SignInView.as_view(), name="login"),
    path("login/code", sign_in.code_page, name="login-code"),
    path("login/second-factor", sign_in.new_factor_page, name="login-new-factor"),
    path("login/sso", sso.start, name="sso"),
    path("login/sso/callback", sso.callback, name="sso-callback"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("account", account.account_page, name="account"),
    path("account/password", account.password_page, name="account-password"),
    path("account/second-factor", account.factor_page, name="account-factor"),
    path("account/sign-out", account.sign_out_page, name="account-sign-out"),
    path("accounts/<int:user_id>", accounts.account_of_page, name="account-of"),
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
