"""Probes: what etcd_aio costs besides calls. `benchmarks.footprint` runs them, each in a process of its own."""
