"""Compares etcd_aio with other clients in one run: `python -m benchmarks`. README.md explains the results."""
