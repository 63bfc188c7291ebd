"""The description of the API: its ways to sign in, and how its numbers are written (SPEC 4)."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerFieldExtension
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView


class KeyScheme(OpenApiAuthenticationExtension):
    """Describes the key of a router or tool."""

    target_class = "omniroute_admin.common.authentication.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return the scheme."""
        return {"type": "http", "scheme": "bearer", "description": "A key made with `manage.py create_key`."}


class SessionScheme(OpenApiAuthenticationExtension):
    """Describes the session of a signed-in operator."""

    target_class = "omniroute_admin.common.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return the scheme."""
        from django.conf import settings

        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}


class PercentScheme(OpenApiSerializerFieldExtension):
    """Describes a percentage: a number; a decimal text is taken too."""

    target_class = "omniroute_admin.common.serializers.PercentNumberField"

    def map_serializer_field(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        """Return the schema."""
        bounds = {"minimum": 0, "maximum": 100}
        return {"type": ["number", "string"] if direction == "request" else "number", **bounds}


class _DecimalScheme(OpenApiSerializerFieldExtension):
    """Describes an exact decimal: a text in answers, a text or a number in requests."""

    def map_serializer_field(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        """Return the schema."""
        if direction == "request":
            return {"type": ["string", "number"]}
        return {"type": "string", "format": "decimal"}


class PlainDecimalScheme(_DecimalScheme):
    """Describes a decimal without a unit."""

    target_class = "omniroute_admin.common.serializers.PlainDecimalField"


class UsdScheme(_DecimalScheme):
    """Describes an amount in USD."""

    target_class = "omniroute_admin.common.serializers.UsdTextField"


class BareDecimalScheme(_DecimalScheme):
    """Describes the decimals of the calls whose serializers only document them."""

    target_class = "rest_framework.serializers.DecimalField"


def loosen_choices(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Turn `oneOf` into `anyOf` everywhere, a hook: a blank text is both a text and blank, and that is no fault."""
    _loosen(result)
    return result


def _loosen(part: Any) -> None:
    if isinstance(part, dict):
        if "oneOf" in part and "discriminator" not in part:
            part["anyOf"] = part.pop("oneOf")
        for inner in part.values():
            _loosen(inner)
    elif isinstance(part, list):
        for inner in part:
            _loosen(inner)


class SchemaView(SpectacularAPIView):
    """The OpenAPI document. It says what there is, not what is in it: no key is needed."""

    authentication_classes = ()
    permission_classes = ()


class DocsView(SpectacularSwaggerSplitView):
    """The page that shows the document; all of it from this server, no script or style inline."""

    authentication_classes = ()
    permission_classes = ()
    template_name = "api/docs.html"
    url_name = "schema"
