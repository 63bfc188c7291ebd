# What needs pip stays behind; of requirements.txt only the runtime section is installed.
FROM python:3.11.13-slim-bookworm AS packages
COPY requirements.txt /tmp/requirements.txt
RUN sed '/^# --- tests/,$d' /tmp/requirements.txt > /tmp/runtime.txt \
    && python -m venv --without-pip /opt/venv \
    && pip --python /opt/venv/bin/python install --no-cache-dir --disable-pip-version-check --only-binary :all: \
       -r /tmp/runtime.txt

FROM python:3.11.13-slim-bookworm
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    VAR_DIR=/var/lib/omniroute_admin STATIC_ROOT=/app/staticfiles
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/omniroute_admin --create-home omniroute
COPY --from=packages /opt/venv /opt/venv
WORKDIR /app
COPY manage.py ./
COPY omniroute_admin omniroute_admin
COPY ladder ladder
COPY billing_catalog billing_catalog
COPY templates templates
COPY static static
# The key signs nothing: collecting files needs settings that load, and no secret may stay in a layer.
RUN VAR_DIR=/tmp/build SECRET_KEY=only-for-collecting-static-files-0123456789-0123456789 \
    python manage.py collectstatic --noinput --verbosity 0 \
    && python -m compileall -q /app \
    && rm -rf /tmp/build
# Where the web processes of a container count together: memory will do, and nothing of it need outlive them.
ENV METRICS_DIR=/tmp/omniroute_metrics LOG_FORMAT=json
# By number, so that an engine that refuses root need not look the name up.
USER 10001:10001
# The only folder that is written: nothing in it where DATABASE_URL and CELERY_BROKER_URL name servers, then a tmpfs will
# do. All else runs on a read-only file system with a tmpfs on /tmp.
VOLUME /var/lib/omniroute_admin
EXPOSE 8000
# Alive, not ready: an engine that replaces the unhealthy must not do so because the database is away (/readyz tells that).
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8000/healthz', timeout=4)"]
# Ends in order at SIGTERM: what is under way is answered.
CMD ["granian", "--interface", "rsgi", "--loop", "uvloop", "--host", "0.0.0.0", "--port", "8000", "--workers", "2", \
     "--respawn-failed-workers", "--no-ws", "--workers-kill-timeout", "5", \
     "--log-config", "omniroute_admin/granian_log.json", "omniroute_admin.rsgi:application"]
