"""The addresses of the product, and the floors'. These come first, so that none of them costs more to find."""

from django.urls import path
from django.utils.module_loading import import_string

from omniroute_admin.bench import floors

handler403 = "omniroute_admin.common.views.guard.permission_denied"
handler404 = "omniroute_admin.common.problems.page_not_found"
handler500 = "omniroute_admin.common.problems.server_error"

urlpatterns = [
    path("api/v1/bench/pools/<path:pool_id>", floors.PoolFloor.as_view()),
    path("api/v1/bench/unchanged/<path:pool_id>", floors.UnchangedFloor.as_view()),
    path("live/bench", floors.poll),
    *import_string("omniroute_admin.urls.urlpatterns"),
]
