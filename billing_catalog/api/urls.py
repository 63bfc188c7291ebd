"""The catalogue's calls, below `api/v1/`."""

from django.urls import path

from billing_catalog.api import views

urlpatterns = [
    path("catalog/billing", views.BillingListView.as_view(), name="catalog-billing"),
    path("catalog/billing/<int:pk>", views.BillingDetailView.as_view(), name="catalog-billing-entry"),
    path("catalog/prices", views.PriceListView.as_view(), name="catalog-prices"),
    path("catalog/prices/<int:pk>", views.PriceDetailView.as_view(), name="catalog-price"),
    path("catalog/tier-overrides", views.OverrideListView.as_view(), name="catalog-tier-overrides"),
    path("catalog/tier-overrides/<int:pk>", views.OverrideDetailView.as_view(), name="catalog-tier-override"),
    path("catalog/free-providers", views.FreeProviderListView.as_view(), name="catalog-free-providers"),
    path("catalog/free-providers/<str:provider>", views.FreeProviderDetailView.as_view(), name="catalog-free-provider"),
    path("catalog/aliases", views.AliasListView.as_view(), name="catalog-aliases"),
    path("catalog/aliases/<str:alias>", views.AliasDetailView.as_view(), name="catalog-alias"),
    path("catalog/price-sources", views.SourceListView.as_view(), name="catalog-price-sources"),
    path("catalog/price-sources/<str:provider>", views.SourceDetailView.as_view(), name="catalog-price-source"),
]
