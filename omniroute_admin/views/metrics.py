"""`/metrics`, for Prometheus: the state as it decides now, and what all processes of this machine counted (SPEC 4)."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import accumulate
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.views import APIView

from omniroute_admin.common import clock
from omniroute_admin.common.core.families import Gauge
from omniroute_admin.common.meters import Histogram, Meter, Numbers, meters, totals
from omniroute_admin.selectors.metrics import read_queue_metrics, read_state_metrics


class AnyFormat(BaseContentNegotiation):
    """Leaves what a caller accepts to the view; problem documents have one form."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """Return the first renderer."""
        return renderers[0], renderers[0].media_type


class MetricsView(APIView):
    """The metrics. Without the database nobody can be told apart, so that the answer is 503 as everywhere."""

    required_scopes = {"GET": "metrics:read"}
    content_negotiation_class = AnyFormat

    @extend_schema(exclude=True)
    def get(self, request: Request) -> StreamingHttpResponse:
        """Answer with all metrics, as text or as OpenMetrics, whichever is asked for first."""
        now = clock.now()
        encode, content_type = choose_encoder(request.META.get("HTTP_ACCEPT", ""))
        state = read_state_metrics(now=now)
        # Asking the broker and writing thousands of lines is done beside the thread that answers pools.
        response = StreamingHttpResponse(_text(state, now, encode), content_type=content_type)
        response["Cache-Control"] = "no-store"
        return response


def _text(state: list[Gauge], now: datetime, encode: Any) -> Iterator[bytes]:
    yield encode(_Told([*state, *read_queue_metrics(now=now)]))


class _Told(Collector):
    """Hands metrics to the library that writes them."""

    def __init__(self, gauges: Iterable[Gauge]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, those without a sample too."""
        for one in self._gauges:
            family = GaugeMetricFamily(one.name, one.help_text, labels=one.labels)
            for values, number in one.samples:
                family.add_metric(values, number)
            yield family
        counted = totals()
        for meter in meters():
            yield _family(meter, counted[meter.name])


def _family(meter: Meter, counted: Numbers) -> Metric:
    if isinstance(meter, Histogram):
        return _histogram(meter, counted)
    family = CounterMetricFamily(meter.name, meter.help_text, labels=meter.labels)
    for values, (number,) in sorted(counted.items()):
        family.add_metric(values, number)
    return family


def _histogram(meter: Histogram, counted: Numbers) -> Metric:
    family = HistogramMetricFamily(meter.name, meter.help_text, labels=meter.labels)
    bounds = [*map(floatToGoString, meter.bounds), "+Inf"]
    for values, (total, *each) in sorted(counted.items()):
        family.add_metric(values, buckets=list(zip(bounds, accumulate(each), strict=True)), sum_value=total)
    return family
