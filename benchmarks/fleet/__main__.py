"""`python -m benchmarks.fleet`: see benchmarks/README.md."""

from benchmarks.fleet.run import main

raise SystemExit(main())
