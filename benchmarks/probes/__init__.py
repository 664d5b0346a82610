"""Probes of start, memory and blocking. `benchmarks.footprint` runs each in its own process."""
