"""The ladder: live state, the decision, its API and its pages."""

from django.apps import AppConfig


class LadderConfig(AppConfig):
    """Configure the ladder."""

    name = "ladder"
    default_auto_field = "django.db.models.BigAutoField"
