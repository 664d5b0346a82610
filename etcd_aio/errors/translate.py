"""Translation: from a server's status and text to the one error class that they mean.

Knows: the wrapping that a text may come in. Never knows: calls or retries; what an answer means stands in `table.py`.
"""

import re
from typing import Final

from etcd_aio.errors.families import NotSupportedByServerError, ServerError
from etcd_aio.errors.status import StatusCode
from etcd_aio.errors.table import BY_CODE, BY_MESSAGE
from etcd_aio.errors.text import sanitize

# How Go prints a status. etcd puts it whole into a watch's cancel reason; each hop in between may add one more.
_PRINTED_STATUS: Final = re.compile(r"(?:rpc error: code = (\w+|Code\(\d+\)) desc = )+")

_GO_NAMES: Final = {code.name.title().replace("_", ""): code for code in StatusCode} | {
    "Canceled": StatusCode.CANCELLED
}


def server_error(code: StatusCode | None, message: str, *, feature: str = "", needs: str = "") -> ServerError:
    """The error that a server's answer stands for.

    The text decides, and the status only if the text is unknown: releases of etcd send the same text with different
    statuses. A status printed at the head of the text (`rpc error: code = ... desc = ...`, as in a watch's cancel
    reason) is taken off and counts as the status; of several the innermost one.

    Args:
        code: the status that was sent; None if the text came without one, as a watch's cancel reason does.
        message: the text that was sent. It may hold anything: what the error keeps of it is sanitized and at most
            `MAX_MESSAGE_BYTES` (`text.py`) long.
        feature: what was asked for; only an answer that says it is missing tells it.
        needs: the release of etcd that it came with, if not all have it.

    Returns:
        The error, with the status that was sent, or that of the text's row if none was.
    """
    printed = _PRINTED_STATUS.match(message)
    if printed is not None:
        code = _GO_NAMES.get(printed[1], code)
        message = message[printed.end() :]
    if code is StatusCode.OK:
        code = StatusCode.UNKNOWN  # an error whose status says that there is none
    row = BY_MESSAGE.get(message)
    if row is not None:
        return row.error(message, code=row.code if code is None else code)
    if code is None:
        code = StatusCode.UNKNOWN
    if code is StatusCode.UNIMPLEMENTED:
        return NotSupportedByServerError(sanitize(message), code=code, feature=feature, needs=needs)
    return BY_CODE[code](sanitize(message), code=code)
