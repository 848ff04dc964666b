"""Fixtures: a worker of an agent, and an official A2A client that calls it through a real server.

The frameworks need different versions of the same packages, so each environment has some of them,
and only their tests are collected. TestPythonAdapters in e2e names the tests that each one runs.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from caller import Caller, Serve

    from parley.adapters._adapter import TaskHandler

FRAMEWORKS = {
    "test_a2a.py": "a2a",
    "test_adk.py": "google.adk",
    "test_crewai.py": "crewai",
    "test_langgraph.py": "langgraph",
    "test_openai_agents.py": "agents",
}


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


collect_ignore = [file for file, module in FRAMEWORKS.items() if not _installed(module)]


@pytest.fixture
def serve(agent: Any) -> Serve:
    """Return a context manager in which a worker does the tasks of the agent with a handler."""

    @asynccontextmanager
    async def run(handler: TaskHandler) -> AsyncIterator[None]:
        worker = agent.worker(concurrency=8, grace=0)
        worker.handler(handler)
        work = asyncio.create_task(worker.serve())
        try:
            yield
        finally:
            worker.stop()
            await work

    return run


@pytest.fixture
async def caller(server: Any, agent: Any) -> AsyncIterator[Caller]:
    """Return the official client, as a user of the org."""
    from caller import connect

    with server.client() as client:
        key = client.keys.create(principal="user:admin", scopes=["svc:a2a:write"])["secret"]
    async with connect(f"{server.url}/a2a/{agent.id}", key) as caller:
        yield caller
