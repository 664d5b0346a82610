"""Fuzzing of the HTTP/2 machine, guided by coverage: `python tests/fuzz/fuzz_http2.py [corpus] -max_total_time=600`.

Any input is fed twice, whole and cut: both machines must tell the same, in bounded time, without an exception, and keep
what `Machine.check` asks for. Bytes are taken either raw, or as the grammar of frames, which gets deeper.
"""

# pyright: reportAttributeAccessIssue=false
# ... since most of atheris is compiled, without stubs.

import sys
from pathlib import Path

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["etcd_aio.http2", "hpack"]):
    import etcd_aio.http2  # noqa: F401

from etcd_aio.http2 import frames
from tests.support.http2 import Machine, data, frame, headers, setting

BLOCKS = (b"\x88", b"\x00\x0bgrpc-status\x010", b"\x40\x01a\x01b", b"\xbe", b"\x3f\xe1\x1f", b"\x08\x03100", b"\x20")
LARGEST = 4096


def script(provider: atheris.FuzzedDataProvider) -> bytes:
    """Frames that look like frames."""
    parts: list[bytes] = []
    while provider.remaining_bytes() and len(parts) < 200:
        stream_id = provider.ConsumeIntInRange(0, 9)
        flags = provider.PickValueInList([0, 1, 4, 5, 8, 9, 12, 13, 0x20, 0x2D, 0xFF])
        match provider.ConsumeIntInRange(0, 7):
            case 0:
                parts.append(headers(stream_id, provider.PickValueInList(list(BLOCKS)), end=provider.ConsumeBool()))
            case 1:
                parts.append(data(stream_id, bytes(provider.ConsumeIntInRange(0, 16_384)), end=provider.ConsumeBool()))
            case 2:
                name = provider.ConsumeIntInRange(0, 7)
                value = provider.PickValueInList([0, 1, 100, 16_384, 65_535, 2**24, 2**31 - 1, 2**32 - 1])
                parts.append(frame(frames.SETTINGS, setting(name, value)))
            case 3:
                size = provider.PickValueInList([0, 1, 1000, 2**16, 2**31 - 1, 2**32 - 1])
                parts.append(frame(frames.WINDOW_UPDATE, size.to_bytes(4, "big"), stream_id=stream_id))
            case 4:
                last = provider.ConsumeIntInRange(0, 9).to_bytes(4, "big")
                parts.append(frame(frames.GOAWAY, last + bytes(4)))
            case 5:
                parts.append(frame(frames.RST_STREAM, bytes(3) + provider.ConsumeBytes(1), stream_id=stream_id))
            case 6:
                kind = provider.ConsumeIntInRange(0, 12)
                payload = provider.ConsumeBytes(provider.ConsumeIntInRange(0, 40))
                parts.append(frame(kind, payload, flags=flags, stream_id=stream_id))
            case _:
                parts.append(provider.ConsumeBytes(provider.ConsumeIntInRange(0, 30)))
    return b"".join(parts)


def machine(*, greeted: bool) -> Machine:
    """With a call, an upload that waits for its window, a stream of messages, and one without a reader."""
    made = Machine(b"" if greeted else None)
    made.open()
    made.open(bytes(100_000), end=True)
    made.open(b"", end=False)
    made.open(b"x", end=False, slow=True)
    return made


def one_input(raw: bytes) -> None:
    """Feed one input whole and cut."""
    provider = atheris.FuzzedDataProvider(raw)
    greeted = provider.ConsumeIntInRange(0, 7) > 0
    step = provider.ConsumeIntInRange(1, 64)
    gives_up = provider.ConsumeIntInRange(0, 15)
    if provider.ConsumeBool():
        stream = provider.ConsumeBytes(min(provider.remaining_bytes(), LARGEST))
    else:
        stream = script(provider)
    whole, cut = machine(greeted=greeted), machine(greeted=greeted)
    for each in (whole, cut):
        if gives_up < len(each.sinks):
            each.outgoing.reset(each.sinks.pop(gives_up))
    whole.receive(stream)
    for start in range(0, len(stream), step):
        cut.receive(stream[start : start + step])
        cut.check()
    whole.check()
    assert [sink.events for sink in whole.sinks] == [sink.events for sink in cut.sinks]
    assert whole.goaways == cut.goaways
    assert [str(error) for error in whole.errors] == [str(error) for error in cut.errors]
    assert whole.take() == cut.take()


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
