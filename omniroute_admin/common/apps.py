"""The lowest layer: what both apps stand on (revision, keys, names, errors)."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """Configure the shared app."""

    name = "omniroute_admin.common"
    label = "common"
    default_auto_field = "django.db.models.BigAutoField"
