"""Builds and judges a release: `python -m release`, as `nox -s release` does. It publishes nothing."""
