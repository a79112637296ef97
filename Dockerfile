# An image for the scheduler and the workers of a cluster: docker build -t retrieval-harness .
# See docs/cluster.md.
FROM python:3.12-slim

WORKDIR /src
COPY . .
RUN pip install --no-cache-dir --constraint constraints.txt ".[cluster,documents,offline]"

# Workers need nothing of the source, and no rights.
WORKDIR /work
RUN rm -rf /src && useradd --create-home worker && chown worker /work
USER worker
ENV HF_HUB_OFFLINE=1 MLFLOW_DISABLE_TELEMETRY=true OMP_NUM_THREADS=1 \
    DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False \
    DASK_DISTRIBUTED__NANNY__PRE_SPAWN_ENVIRON='{"OMP_NUM_THREADS": 1, "MALLOC_TRIM_THRESHOLD_": 134217728}'
CMD ["harness", "--help"]
