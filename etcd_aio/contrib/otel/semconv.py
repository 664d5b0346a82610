"""The names of spans, metrics and attributes, in one table: those of OpenTelemetry's conventions for RPC, and own ones.

The conventions for RPC are not stable yet: names may change with the version of the table, and the schema URL, which is
sent with all telemetry, tells which it is. After version 1.44 `rpc.response.status_code` is to become
`rpc.status_code`; it changes here when there is a schema that has it.
"""

from typing import Final

VERSION: Final = "1.44.0"
SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{VERSION}"

# Of the conventions.

RPC_SYSTEM_NAME: Final = "rpc.system.name"
RPC_METHOD: Final = "rpc.method"
RPC_STATUS_CODE: Final = "rpc.response.status_code"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
ERROR_TYPE: Final = "error.type"
DB_SYSTEM_NAME: Final = "db.system.name"
DB_OPERATION_NAME: Final = "db.operation.name"
CALL_DURATION: Final = "rpc.client.call.duration"

DURATION_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""Seconds: those that the conventions advise for the duration of calls."""

# Own ones.

ATTEMPT: Final = "etcd_aio.attempt"
ATTEMPTS: Final = "etcd_aio.attempts"
MAYBE_APPLIED: Final = "etcd_aio.maybe_applied"
DELIVERY: Final = "etcd_aio.delivery"
CLIENT_NAME: Final = "etcd_aio.client_name"
SECONDS: Final = "etcd_aio.duration"
STREAM_STATE: Final = "etcd_aio.stream.state"
CLIENT_ATTEMPTS: Final = "etcd_aio.client.attempts"
CLIENT_RETRIES: Final = "etcd_aio.client.retries"
CLIENT_STREAM_MOVES: Final = "etcd_aio.client.stream.moves"
CLIENT_STREAMS: Final = "etcd_aio.client.streams"
CLIENT_WATCH_EVENTS: Final = "etcd_aio.client.watch.events"
CLIENT_LEASE_LOST: Final = "etcd_aio.client.lease.lost"
CLIENT_ENDPOINT_UP: Final = "etcd_aio.client.endpoint.up"
CLIENT_ENDPOINT_LATENCY: Final = "etcd_aio.client.endpoint.latency"
