"""Generates the readers of runs of key-values and events on top of the accelerator.

The accelerator reads what is laid out as etcd writes it. The general decoder reads the item at which it stops.
"""

from collections.abc import Iterator

from etcd_aio.codec.codegen import GeneratedFunction, Source
from etcd_aio.codec.speedups import ReadRun
from etcd_aio.codec.wire import read_length
from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AcceleratedReader:
    """Generates a reader that works like the one of `KeyValuesReader`.

    Attributes:
        general: the decoder for items with another layout.
        cost: how many bytes of a step an item counts for.
        read: the accelerator's function for these items.
        variable: the name of that function.
    """

    general: GeneratedFunction
    cost: int
    read: ReadRun
    variable: str

    @property
    def name(self) -> str:
        """The name of the generated function, which is unique."""
        return f"read_{self.general.name}"

    def namespace(self) -> dict[str, object]:
        """The names that the source refers to."""
        return {self.variable: self.read, "read_length": read_length}

    def callees(self) -> Iterator[GeneratedFunction]:
        """The general decoder."""
        yield self.general

    def source(self) -> Source:
        """The source of the reader."""
        source = Source()
        line, block = source.line, source.block
        with block(f"def {self.name}(data, at, end, pause, tag, items, depth):"), block("while True:"):
            line("before = len(items)")
            line(f"at = {self.variable}(data, at, end, pause, {self.cost}, tag, items)")
            line(f"pause -= (len(items) - before) * {self.cost}")
            with block("if at > pause or at >= end or data[at] != tag:"):
                line("return at")
            line("stop, start = read_length(data, at + 1, end)")
            with block("if stop > end:"):
                line("return at")
            line(f"items.append({self.general.name}(data, start, stop, depth))")
            line("at = stop")
            line(f"pause -= {self.cost}")
        return source
