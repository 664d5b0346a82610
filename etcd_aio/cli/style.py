"""The options for showing a result."""

from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """Options for showing a result.

    Attributes:
        is_hex: keys and values, or ids, in hexadecimal.
        value_only: of a key only the value.
        parses_values: values that are JSON are shown as such, by formats that can.
        decodes: values are those of Kubernetes, and are shown as its objects.
    """

    is_hex: bool = False
    value_only: bool = False
    parses_values: bool = False
    decodes: bool = False
