"""Values: what one is that the API server of Kubernetes has stored, and what of it can be read.

The API server stores most objects as protobuf, in an envelope with apiVersion and kind, behind four bytes of magic. It
stores objects of custom resources as JSON, or as CBOR. Values may be encrypted by a provider of the API server.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from etcd_aio.dataclass import dataclass
from etcd_aio.kubernetes.messages import message_of_kind
from etcd_aio.kubernetes.objects import Objects
from etcd_aio.kubernetes.special import json_of, last_bytes, text_of
from etcd_aio.kubernetes.wire import MalformedMessageError, fields_of

_PROTOBUF: Final = b"k8s\0"
_ENCRYPTED: Final = b"k8s:enc:"
_CBOR: Final = b"\xd9\xd9\xf7"
_METADATA: Final = "meta.ObjectMeta"
_FIRST_FIELD: Final = 1  # has the metadata in every kind


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of Kubernetes, as far as its value can be read.

    Attributes:
        encoding: "protobuf", "json", "cbor", "encrypted", or "unknown" for a value that is none of Kubernetes.
        api_version: such as `apps/v1`; empty if it cannot be read, as those below.
        kind: such as `Deployment`.
        namespace: its namespace; empty for objects without one.
        name: its name.
        object: its JSON; None if nothing can be read. Of a kind that is not known it has only the metadata.
        problems: what cannot be read, and why.
    """

    encoding: str
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    object: "dict[str, Any] | None" = None
    problems: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The object in one line: `apps/v1 Deployment default/web`."""
        full_name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return " ".join(filter(None, (self.api_version, self.kind, full_name)))


def decode_value(value: bytes) -> StoredObject:
    """Read a value that the API server of Kubernetes has stored.

    No value raises an exception: `problems` says what cannot be read.
    """
    if value.startswith(_PROTOBUF):
        return _from_protobuf(value[len(_PROTOBUF) :])
    if value.startswith(_ENCRYPTED):
        return _encrypted(value[len(_ENCRYPTED) :])
    if value.startswith(_CBOR):
        return StoredObject("cbor", problems=(f"{len(value)} bytes of CBOR are not decoded",))
    if value[:1] == b"{":
        try:
            return _with_names("json", json_of(value))
        except MalformedMessageError as error:
            return StoredObject("unknown", problems=(f"the value begins as JSON, and cannot be read: {error}",))
    return StoredObject("unknown", problems=("the value is none that Kubernetes writes",))


def _from_protobuf(data: bytes) -> StoredObject:
    try:
        envelope = fields_of(data)
        names = fields_of(last_bytes(envelope, 1) or b"")
        api_version, kind = (text_of(last_bytes(names, number) or b"") for number in (1, 2))
        raw = last_bytes(envelope, 2)
        encoding, content_type = (text_of(last_bytes(envelope, number) or b"") for number in (3, 4))
    except MalformedMessageError as error:
        return StoredObject("protobuf", problems=(f"the envelope cannot be read: {error}",))
    if raw is None:  # the API server writes one that is empty, too
        return StoredObject("protobuf", api_version, kind, problems=("the value is cut short: it has no object",))
    if encoding or content_type not in ("", "application/vnd.kubernetes.protobuf"):
        problem = f"{len(raw)} bytes are not decoded: their type is {content_type!r}, their encoding {encoding!r}"
        return StoredObject("protobuf", api_version, kind, problems=(problem,))
    head = {"apiVersion": api_version, "kind": kind}
    message = message_of_kind(api_version, kind)
    problems: list[str] = []
    if message is not None:
        objects = Objects()
        try:
            found = _with_names("protobuf", {**head, **objects.read(message, raw)})
        except MalformedMessageError as error:
            problems.append(f"the object cannot be read: {error}")
        else:
            more = [f"{objects.left_out} more fields"] if objects.left_out else []
            unread = [f"not decoded, as this release does not know it: {one}" for one in objects.unknown + more]
            return replace(found, problems=tuple(unread))
    else:
        problems.append("the kind is not known")
    return _metadata_only(head, raw, problems)


def _metadata_only(head: dict[str, Any], raw: bytes, problems: list[str]) -> StoredObject:
    """The metadata, which every kind has in its first field."""
    try:
        found = fields_of(raw)
        metadata = last_bytes(found, _FIRST_FIELD) or b""
        shown = Objects().read(_METADATA, metadata)
    except MalformedMessageError:
        return StoredObject(
            "protobuf", head["apiVersion"], head["kind"], problems=(*problems, f"{len(raw)} bytes are not decoded")
        )
    rest = len(raw) - len(metadata)
    problems.append(f"only the metadata is decoded, and {rest} bytes are not")
    return replace(_with_names("protobuf", {**head, "metadata": shown}), problems=tuple(problems))


def _with_names(encoding: str, found: Any) -> StoredObject:
    """The object with the names that its JSON has."""
    metadata = found.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    return StoredObject(
        encoding,
        _text(found, "apiVersion"),
        _text(found, "kind"),
        _text(names, "namespace"),
        _text(names, "name"),
        found,
    )


def _text(found: Mapping[str, Any], name: str) -> str:
    text = found.get(name)
    return text if isinstance(text, str) else ""


def _encrypted(rest: bytes) -> StoredObject:
    provider, _, more = rest.partition(b":")
    version, _, more = more.partition(b":")
    key, is_whole, secret = more.partition(b":")
    if not is_whole or len(rest) - len(secret) > 200:
        return StoredObject("encrypted", problems=("the value is encrypted, in a form that is not known",))
    what = "plugin" if provider == b"kms" else "key"
    problem = (
        f"the value is encrypted by the provider {text_of(provider)} ({text_of(version)}), {what} {text_of(key)!r}: "
        f"{len(secret)} bytes are not decoded"
    )
    return StoredObject("encrypted", problems=(problem,))
