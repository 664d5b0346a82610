"""The frame of every probe: its command line, its loop, and one line of JSON as its result."""

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from etcd_aio.transport import ENGINES, EngineName

Numbers: TypeAlias = Mapping[str, float]


def main(measure: Callable[[argparse.Namespace, EngineName], Awaitable[Numbers]], **options: type) -> None:
    """Run one probe and print its numbers.

    Args:
        measure: the probe, which gets the arguments and the engine.
        options: additional required arguments: name to type.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--engine", required=True, choices=ENGINES)
    parser.add_argument("--uvloop", action="store_true")
    for name, kind in options.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    arguments = parser.parse_args()
    engine: EngineName = arguments.engine
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if arguments.uvloop:
        import uvloop

        factory = uvloop.new_event_loop

    async def run() -> Numbers:
        return await measure(arguments, engine)

    with asyncio.Runner(loop_factory=factory) as runner:
        print(json.dumps(runner.run(run())))
