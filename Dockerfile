# The runtime section of requirements.txt only: no test tool, no compiler.
FROM python:3.11-slim AS packages
COPY requirements.txt /tmp/requirements.txt
RUN sed '/^# --- tests/,$d' /tmp/requirements.txt > /tmp/runtime.txt \
    && python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check -r /tmp/runtime.txt

FROM python:3.11-slim
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    VAR_DIR=/var/lib/omniroute_admin STATIC_ROOT=/app/staticfiles
RUN useradd --system --uid 10001 --home-dir /var/lib/omniroute_admin --create-home omniroute
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
    python manage.py collectstatic --noinput --verbosity 0 && rm -rf /tmp/build
# Where the web processes of a container count together: memory will do, and nothing of it need outlive them.
ENV METRICS_DIR=/tmp/omniroute_metrics LOG_FORMAT=json
USER omniroute
VOLUME /var/lib/omniroute_admin
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8000/readyz', timeout=4)"]
CMD ["granian", "--interface", "rsgi", "--loop", "uvloop", "--host", "0.0.0.0", "--port", "8000", "--workers", "2", \
     "--respawn-failed-workers", "--no-ws", "--workers-kill-timeout", "5", \
     "--log-config", "omniroute_admin/granian_log.json", "omniroute_admin.rsgi:application"]
