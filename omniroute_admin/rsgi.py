"""The entry point of the web server that quickstart and the image run."""

from omniroute_admin.wsgi import application as django


def _made() -> object:
    # Only now that Django is set up can be imported what stands on it.
    from omniroute_admin.front import Application

    return Application(django)


application = _made()
