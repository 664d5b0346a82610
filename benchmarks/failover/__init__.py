"""Measures clients under faults: etcd_aio and the official Go client in an open loop."""
