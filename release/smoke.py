"""What must work right after an installation, on the standard library and the package alone: `python smoke.py VERSION`.

It runs in the environment into which an archive was installed, away from the checkout. It needs no server: the client
talks to the fake etcd of the package. It prints a line of JSON.
"""

import asyncio
import importlib
import importlib.metadata
import importlib.util
import json
import pkgutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Literal

OPTIONAL = (
    *("click", "dns", "opentelemetry", "prometheus_client", "pytest", "rich", "uvloop", "pydantic", "starlette"),
    "websockets",
)
ENGINES: tuple[Literal["gateway"], Literal["auto"]] = ("gateway", "auto")  # that need an extra


def imports() -> dict[str, str]:
    """Import the package and its modules. Returns what needs an extra, with what it says."""
    import etcd_aio
    from etcd_aio import Client, ConfigError

    found = [name for name in OPTIONAL if name in sys.modules]
    assert not found, f"`import etcd_aio` imports {found}"
    lacking = {}
    for module in pkgutil.walk_packages(etcd_aio.__path__, "etcd_aio.", onerror=lambda name: None):
        parts = module.name.split(".")
        if parts[1] in ("__main__", "cli") or (parts[1] == "contrib" and len(parts) > 3):
            continue  # the program is run below; parts of a package of `contrib` come with it
        if module.name.startswith(tuple(f"etcd_aio.transport.{engine}" for engine in ENGINES)):
            continue  # engines are tried below
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert parts[1] == "contrib", f"{module.name} needs what is not installed: {error}"
            assert "install" in str(error), f"{module.name} does not say what to install: {error}"
            lacking[module.name] = str(error)
    for engine in ENGINES:
        try:
            Client("http://127.0.0.1:1", engine=engine)
        except ConfigError as error:
            lacking[f"engine={engine!r}"] = str(error)
    return lacking


async def calls() -> None:
    """The main calls, each once, on a fake etcd."""
    from etcd_aio import Key, op
    from etcd_aio.fake import FakeEtcd

    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("a", "1")
        kv = await client.get("a")
        assert kv is not None
        assert kv.text() == "1"
        done = await client.txn().when(Key("a").value == "1").then(op.put("b", "2")).commit()
        assert done.succeeded
        async with client.watch(prefix="c/") as watcher, client.lease(ttl=10) as lease:
            await client.put("c/1", "x", lease=lease)
            assert (await anext(watcher)).key_text() == "c/1"
        async with client.lock("jobs/1", ttl=10) as lock:
            await lock.fenced.put("d", "4")
        async with client.election("e").lead("host"):
            pass
        assert [kv.key_text() async for kv in client.scan(all_keys=True)] == ["a", "b", "d"]


def program(has_click: bool) -> None:
    """The command `etcd-aio`: it runs, or says what to install."""
    for command in ([str(Path(sysconfig.get_path("scripts")) / "etcd-aio")], [sys.executable, "-m", "etcd_aio"]):
        done = subprocess.run([*command, "version"], capture_output=True, text=True, check=False)
        if has_click:
            assert done.returncode == 0, done.stderr
        else:
            assert done.returncode == 1, done
            assert "etcd_aio[cli]" in done.stderr, done.stderr


def main(version: str) -> None:
    """Check everything, and tell about this Python."""
    installed = importlib.metadata.version("etcd-aio")
    lacking = imports()

    import etcd_aio

    assert etcd_aio.__version__ == installed == version, (etcd_aio.__version__, installed, version)
    folder = Path(str(etcd_aio.__file__)).parent
    assert "site-packages" in folder.parts, f"imported from {folder}"
    assert (folder / "py.typed").exists()
    asyncio.run(calls())
    program(importlib.util.find_spec("click") is not None)
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert not (free and gil), "an import has switched the GIL on"
    print(json.dumps({"python": sys.version.split()[0], "free_threaded": free, "lacking": lacking}))


if __name__ == "__main__":
    main(sys.argv[1])
