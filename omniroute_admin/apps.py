"""The project itself as an app: pages that belong to no other, and `quickstart`."""

from importlib import import_module

from django.apps import AppConfig


class OmnirouteAdminConfig(AppConfig):
    """Configure the project app."""

    name = "omniroute_admin"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Load the Celery application, so that every process that sends a task knows the broker and marks it."""
        import_module("omniroute_admin.celery")
        import_module("omniroute_admin.periodic").connect()
