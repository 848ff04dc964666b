"""An agent that asks, reports progress, and writes its answer while it thinks.

PARLEY_KEY=… python examples/worker.py scout
"""

import asyncio
import sys
from collections.abc import AsyncIterator

from parley import Task, Worker

worker = Worker(sys.argv[1], concurrency=8)


async def think(prompt: str) -> AsyncIterator[str]:
    """Yield the words of an answer, as a model would."""
    for word in prompt.split():
        await asyncio.sleep(0.02)
        yield f"{word} "


@worker.handler
async def handle(task: Task) -> None:
    audience = await task.ask("Who will read it?")
    await task.progress("thinking")
    async with task.open_artifact("answer", name="answer.txt") as answer:
        async for word in think(f"{task.text}, for {audience.text}"):
            await answer.write(word)


worker.run()
