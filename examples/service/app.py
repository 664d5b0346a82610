"""Notes over HTTP. Each instance serves all of them; etcd has the notes, the settings and the list of the instances.

The environment has `ETCD_ENDPOINTS`, and in `SERVICE_ADDRESS` the address of this instance. The instance starts when
etcd can be reached; from then on it lives through outages with the settings and peers that it has.
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, TypeAlias, TypedDict

from fastapi import Body, Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from etcd_aio import EtcdError
from etcd_aio.concurrency import Leadership
from etcd_aio.contrib.config import LiveConfig
from etcd_aio.contrib.fastapi import EtcdDep, EtcdFastAPI
from etcd_aio.once import ExactlyOnce
from etcd_aio.services import Endpoints

PREFIX = "example/service/"
ADDRESS = os.environ.get("SERVICE_ADDRESS", "127.0.0.1:8000")

logger = logging.getLogger("service")


class Limits(BaseModel, frozen=True):
    note_characters: int = Field(default=1000, gt=0)


class Settings(BaseModel, frozen=True):
    """Change them by `etcdctl put example/service/config/greeting Welcome`."""

    greeting: str = "Hello"
    report_every: float = Field(default=1.0, gt=0)
    limits: Limits = Limits()


class Parts(TypedDict):
    """What requests find in `request.state`, besides the client."""

    config: LiveConfig[Settings]
    peers: Endpoints
    once: ExactlyOnce


etcd = EtcdFastAPI(os.environ.get("ETCD_ENDPOINTS"), ready="connected", ready_timeout=30)


@asynccontextmanager
async def parts(app: FastAPI) -> AsyncIterator[Parts]:
    """The parts of this instance. They end in the opposite order: others stop to call it before it stops to work."""
    client = etcd.client
    async with etcd.singleton(f"{PREFIX}first-note") as won:
        if won:  # one instance of all, once
            await client.put(f"{PREFIX}notes/first", "written by the first instance")
    async with (
        LiveConfig(client, Settings, prefix=f"{PREFIX}config/") as config,
        client.exactly_once() as once,
        client.resolve(f"{PREFIX}peers") as peers,
        client.register(f"{PREFIX}peers", ADDRESS, ttl=5),
    ):
        yield {"config": config, "peers": peers, "once": once}


app = FastAPI(lifespan=etcd.lifespan(parts))
app.include_router(etcd.probes())


@etcd.leader_only(f"{PREFIX}report", ttl=5)
async def report(leadership: Leadership) -> None:
    """Count the notes, on one instance. etcd refuses a report of a leader that is none any more."""
    client = etcd.client
    async with LiveConfig(client, Settings, prefix=f"{PREFIX}config/") as config:
        while True:
            try:
                notes = await client.range(prefix=f"{PREFIX}notes/", count_only=True)
                content = {"notes": notes.count, "by": ADDRESS, "token": leadership.fencing_token}
                await leadership.fenced.put(f"{PREFIX}report", json.dumps(content))
            except EtcdError as error:
                if not error.retryable:  # such as a lost leadership
                    raise
                logger.warning("no report this time: %s", error)
            await asyncio.sleep(config.current.report_every)


@app.exception_handler(EtcdError)
async def unavailable(request: Request, error: EtcdError) -> JSONResponse:
    """A call that has failed on every member within its time. The client has repeated what could be repeated."""
    logger.warning("%s %s: %s", request.method, request.url.path, error)
    return JSONResponse({"error": "the store is not available", "maybe_applied": error.maybe_applied}, 503)


def _config(request: Request) -> LiveConfig[Settings]:
    config: LiveConfig[Settings] = request.state.config
    return config


def _peers(request: Request) -> Endpoints:
    peers: Endpoints = request.state.peers
    return peers


def _once(request: Request) -> ExactlyOnce:
    once: ExactlyOnce = request.state.once
    return once


Config: TypeAlias = Annotated[LiveConfig[Settings], Depends(_config)]
Peers: TypeAlias = Annotated[Endpoints, Depends(_peers)]
Once: TypeAlias = Annotated[ExactlyOnce, Depends(_once)]


@app.get("/")
async def greeting(config: Config) -> dict[str, str]:
    """What is read here is in memory."""
    return {"greeting": config.current.greeting, "from": ADDRESS}


@app.get("/peers")
async def list_peers(peers: Peers) -> list[str]:
    return sorted(peer.address for peer in peers.endpoints)


@app.get("/notes/{name}")
async def read_note(name: str, client: EtcdDep) -> dict[str, str]:
    """A linearizable read: it has every write that was answered before, by whichever instance."""
    note = await client.get(f"{PREFIX}notes/{name}")
    if note is None:
        raise HTTPException(404, "there is no such note")
    return {"text": note.text()}


@app.put("/notes/{name}", status_code=204)
async def write_note(name: str, text: Annotated[str, Body(embed=True)], once: Once, config: Config) -> None:
    if len(text) > config.current.limits.note_characters:
        raise HTTPException(422, "the note is too long")
    await once.put(f"{PREFIX}notes/{name}", text)


@app.get("/report")
async def read_report(client: EtcdDep) -> dict[str, object]:
    found = await client.get(f"{PREFIX}report")
    content: dict[str, object] = {} if found is None else json.loads(found.value)
    return content
