"""The project itself as an app: pages that belong to no other, and `quickstart`."""

from django.apps import AppConfig


class OmnirouteAdminConfig(AppConfig):
    """Configure the project app."""

    name = "omniroute_admin"
    default_auto_field = "django.db.models.BigAutoField"
