"""Measures how many tasks a second one worker process does.

    PARLEY_SERVER=… PARLEY_KEY=… python scripts/throughput.py [--tasks 5000] [--profile]

The key belongs to an admin. The tasks wait in the queue before the worker starts, so that only the
worker and the server are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import time
import uuid

from parley import AsyncClient, Task, Worker


async def fill(client: AsyncClient, agent: str, tasks: int) -> None:
    """Send all tasks."""
    left = iter(range(tasks))

    async def send() -> None:
        for i in left:
            await client.agent(agent).send(f"task {i}", id=f"task-{i}")

    await asyncio.gather(*(send() for _ in range(32)))


async def measure(tasks: int, concurrency: int, profile: cProfile.Profile | None) -> float:
    """Return the tasks a second."""
    agent = f"throughput-{uuid.uuid4().hex[:8]}"
    async with AsyncClient() as client:
        await client.agents.create(id=agent, name=agent)
        key = await client.keys.create(principal=f"agent:{agent}", scopes=["svc:a2a:serve"])
        await fill(client, agent, tasks)
    worker = Worker(agent, key=key["secret"], concurrency=concurrency)
    done = 0

    @worker.handler
    async def handle(task: Task) -> str:
        nonlocal done
        done += 1
        if done == tasks:
            worker.stop()
        return task.text

    if profile is not None:
        profile.enable()
    began = time.perf_counter()
    await worker.serve()
    took = time.perf_counter() - began
    if profile is not None:
        profile.disable()
    return tasks / took


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=5000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    profile = cProfile.Profile() if options.profile else None
    rate = asyncio.run(measure(options.tasks, options.concurrency, profile))
    print(f"{rate:.0f} tasks a second, concurrency {options.concurrency}")
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
