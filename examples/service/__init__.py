"""A complete service: FastAPI with registration, peers, live configuration, a leader-only job and readiness.

`app.py` is the service. `nox -s service` runs three instances of it on three real etcd members.
"""
