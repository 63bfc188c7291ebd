"""The product's settings, with the floors served beside it: everything a request passes is the same for both."""

from omniroute_admin.settings import *  # noqa: F403 - the same settings is what this is about

ROOT_URLCONF = "omniroute_admin.bench.urls"
