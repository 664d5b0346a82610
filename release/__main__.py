"""The entry point of `python -m release`."""

from release.run import main

raise SystemExit(main())
