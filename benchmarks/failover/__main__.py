"""`python -m benchmarks.failover`: see benchmarks/README.md."""

from benchmarks.failover.run import main

raise SystemExit(main())
