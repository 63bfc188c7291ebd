"""Addresses of the catalogue's pages."""

from django.urls import path

from billing_catalog.services.kinds import ALIASES, FREE_PROVIDERS, PRICE_SOURCES, TIER_OVERRIDES
from billing_catalog.views import files, lists, prices, rows, undo

urlpatterns = [
    path("catalogue", lists.billing_list, name="catalogue"),
    path("catalogue/prices", prices.price_list, name="catalogue-prices"),
    path("catalogue/prices/model", prices.model_page, name="catalogue-model"),
    path("catalogue/prices/<int:pk>/end", prices.end_price_page, name="catalogue-end-price"),
    path("catalogue/tier-overrides", lists.row_list, {"kind": TIER_OVERRIDES}, name="catalogue-tier-overrides"),
    path("catalogue/free-providers", lists.row_list, {"kind": FREE_PROVIDERS}, name="catalogue-free-providers"),
    path("catalogue/aliases", lists.row_list, {"kind": ALIASES}, name="catalogue-aliases"),
    path("catalogue/price-sources", lists.row_list, {"kind": PRICE_SOURCES}, name="catalogue-price-sources"),
    path("catalogue/files", files.files_page, name="catalogue-files"),
    path("catalogue/files/undo/<int:micros>", undo.undo_page, name="catalogue-undo"),
    path("catalogue/export/<str:name>.<str:form>", files.export_file, name="catalogue-export"),
    path("catalogue/billing/<int:pk>/reviewed", rows.mark_reviewed, name="catalogue-reviewed"),
    path("catalogue/<str:kind_key>/new", rows.new_row, name="catalogue-new"),
    path("catalogue/<str:kind_key>/<int:pk>", rows.row_page, name="catalogue-row"),
    path("catalogue/<str:kind_key>/<int:pk>/delete", rows.delete_page, name="catalogue-delete"),
]
