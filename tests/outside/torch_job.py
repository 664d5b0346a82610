"""A worker of a job of torchrun: sums over both ranks for 12 seconds; one rank fails twice, so the agents meet again.

The argument is a folder, in which each rank that has finished leaves a file.
"""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

STEPS = 60
FAILURES = 2

restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(STEPS):
    value = torch.ones(1) * (rank + step)
    dist.all_reduce(value)
    assert value.item() == 2 * step + 1, value
    if step == STEPS // 3 and restarts < FAILURES and rank == 1:
        raise SystemExit(f"it fails on purpose, at restart {restarts}")
    time.sleep(0.2)
dist.destroy_process_group()
Path(sys.argv[1], str(rank)).write_text("finished")
