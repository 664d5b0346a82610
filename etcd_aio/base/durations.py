"""A duration in text, as Go prints it. Pure; the reader is in `config/text.py`."""


def go_duration(nanoseconds: int) -> str:
    """A duration as Go prints it: `1h2m3.5s`, `4.9ms`, `-120µs`."""
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest < 1000:
        return f"{sign}{rest}ns" if rest else "0s"
    for size, unit in ((1000, "µs"), (10**6, "ms")):
        if rest < size * 1000:
            return f"{sign}{_decimal(rest, size)}{unit}"
    minutes, rest = divmod(rest, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 10**9)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else sign + text


def _decimal(number: int, size: int) -> str:
    whole, rest = divmod(number, size)
    digits = f"{rest:0{len(str(size)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else f"{whole}"
