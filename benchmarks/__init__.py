"""etcd_aio and its neighbours side by side, in one run: `python -m benchmarks`. README.md tells how to read it."""
