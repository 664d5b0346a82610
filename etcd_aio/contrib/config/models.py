"""Models: settings made of nested data, by whatever library the model is of, and what is wrong with them. Pure.

Errors of validation repeat the values that they refuse, and settings may be secrets. So they are summed up by the path
of each setting and the kind of its error, and do not appear themselves.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from etcd_aio.contrib.config.dataclass import MismatchError, convert
from etcd_aio.contrib.config.document import UnusableKeyError

T = TypeVar("T")

_MOST_SHOWN: Final = 5
_MSGSPEC: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_MSGSPEC_TYPES: Final = re.compile(r"Expected `[^`]*`, got `[^`]*`|Object missing required field `[^`]*`")


class InvalidSettingsError(ValueError):
    """The settings in etcd do not fit the model. Nothing of it has their values.

    Attributes:
        problems: the path of each setting that is wrong, and the kind of its error.
        revision: of etcd, at which they were so; 0 if unknown.
    """

    def __init__(self, problems: Mapping[str, str], revision: int = 0) -> None:
        shown = [f"{path or 'the settings'}: {what}" for path, what in problems.items()]
        more = f", and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
        where = f" at revision {revision}" if revision else ""
        super().__init__(f"invalid settings{where}: {'; '.join(shown[:_MOST_SHOWN])}{more}")
        self.problems = dict(problems)
        self.revision = revision


def build(model: Any, make_data: Callable[[], dict[str, Any]], revision: int) -> Any:
    """Make settings.

    Args:
        model: a class of pydantic, msgspec or dataclasses, `dict`, or a function of nested data.
        make_data: makes the nested data.
        revision: of etcd, for the error.

    Raises:
        InvalidSettingsError: they do not fit.
    """
    try:
        return _made(model, make_data())
    except UnusableKeyError as error:
        problems = {error.key: error.reason}
    except MismatchError as error:
        problems = {".".join(error.path): error.reason}
    except Exception as error:  # each library has its own
        problems = _problems(error)
    raise InvalidSettingsError(problems, revision)  # outside of the handlers, so that it has no context


def _made(model: Any, data: dict[str, Any]) -> Any:
    make: Callable[..., Any] = model
    if model is dict:
        return frozen(data)
    if hasattr(model, "model_validate"):  # pydantic
        return model.model_validate(data)
    if hasattr(model, "__struct_fields__"):  # msgspec
        import msgspec

        return msgspec.convert(data, type=model)
    if dataclasses.is_dataclass(model) and not hasattr(model, "__pydantic_validator__"):
        return convert(cast("type[Any]", model), data)
    if isinstance(model, type):  # also a dataclass of pydantic, which validates itself
        return make(**data)
    return make(data)


def frozen(data: Any) -> Any:
    """Nested data that cannot be changed."""
    if isinstance(data, dict):
        return MappingProxyType({name: frozen(value) for name, value in data.items()})
    if isinstance(data, list):
        return tuple(frozen(value) for value in data)
    return data


def _problems(error: Exception) -> dict[str, str]:
    """The problems that an error of a library names, without values."""
    errors: Any = getattr(error, "errors", None)
    if callable(errors):  # pydantic
        try:
            found: Any = errors(include_url=False, include_context=False, include_input=False)
            return {".".join(map(str, problem["loc"])): str(problem["type"]) for problem in found}
        except (TypeError, KeyError):  # of another library
            return {"": type(error).__name__}
    if type(error).__module__.partition(".")[0] == "msgspec":
        match = _MSGSPEC.fullmatch(str(error))
        what, path = (match["what"], match["path"] or "") if match else ("", "")
        return {path: what if _MSGSPEC_TYPES.fullmatch(what) else type(error).__name__}
    return {"": type(error).__name__}
