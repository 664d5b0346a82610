"""Reporters of errors show the local variables of every frame: each of them can be shown, whatever went wrong."""

import asyncio
import inspect
import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any

import pytest

from etcd_aio import Client, op

pytestmark = pytest.mark.anyio

OPERATIONS = sorted(name for name, found in vars(op).items() if inspect.isfunction(found) and not name.startswith("_"))
METHODS = sorted(
    name
    for name, found in inspect.getmembers(Client)
    if inspect.isfunction(found) and not name.startswith("_") and name not in ("aclose", "close")
)


def record(error: BaseException) -> str:
    """What unittest, pytest and services for errors do with an error."""
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def wrong_calls(call: Callable[..., Any]) -> list[Callable[[], Any]]:
    """The call with wrong arguments: all of them, and each option alone beside keys and values that are right."""
    parameters = [
        one
        for one in inspect.signature(call).parameters.values()
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    ]
    positional = [one for one in parameters if one.kind is not one.KEYWORD_ONLY and one.default is one.empty]
    options = [one for one in parameters if one not in positional]
    right = ["k"] * len(positional)
    calls: list[Callable[[], Any]] = [
        lambda: call(*(object() for _ in positional)),
        lambda: call(*(1 for _ in positional)),
    ]
    calls += [partial(call, *right[:at], object(), *right[at + 1 :]) for at in range(len(positional))]
    calls += [partial(call, *right, **{option.name: object()}) for option in options]
    return calls


async def errors_of(call: Callable[..., Any]) -> list[BaseException]:
    """The errors of wrong calls, with their frames."""
    found: list[BaseException] = []
    for make in wrong_calls(call):
        try:
            async with asyncio.timeout(0.05):
                made = make()
                if inspect.isawaitable(made):
                    await made
                elif isinstance(made, AbstractAsyncContextManager):
                    async with made:
                        pass
        except Exception as error:
            found.append(error)
    return found


@pytest.mark.parametrize("name", OPERATIONS)
async def test_errors_of_operations_can_be_recorded(name: str) -> None:
    for error in await errors_of(getattr(op, name)):
        assert type(error).__name__ in record(error)


@pytest.mark.parametrize("kind", ["plain", "namespace", "ordered"])
@pytest.mark.parametrize("name", METHODS)
async def test_errors_of_methods_can_be_recorded(name: str, kind: str) -> None:
    client = Client("http://127.0.0.1:1", timeout=0.01, connect_timeout=0.01)
    try:
        store: Any = client
        with suppress(AttributeError):
            store = {"plain": lambda: client, "namespace": lambda: client.namespace("a/"), "ordered": client.ordered}[
                kind
            ]()
        call = getattr(store, name, None)
        if call is not None:
            for error in await errors_of(call):
                assert type(error).__name__ in record(error)
    finally:
        await client.aclose()
