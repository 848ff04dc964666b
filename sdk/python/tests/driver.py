"""The agent of the conformance suite; ../../conformance/README.md has its contract."""

import asyncio
import json
import logging
import os
import sys

from parley import (
    APIError,
    DirectMessage,
    Fail,
    FilePart,
    InterruptedTaskError,
    Reject,
    Task,
    Worker,
)


def number(name: str, missing: int) -> int:
    return int(os.environ.get(name) or missing)


def say(event: str, **about: object) -> None:
    print(json.dumps({"event": event, **about}), flush=True)


logging.basicConfig(level=logging.INFO, stream=sys.stderr)
logging.getLogger("httpx").setLevel(logging.WARNING)
worker = Worker(
    os.environ["AGENT"],
    concurrency=number("CONCURRENCY", 1),
    name=os.environ.get("WORKER") or None,
    lease=number("LEASE", 30),
    grace=number("GRACE", 5000) / 1000,
)


@worker.on_message
async def read(message: DirectMessage) -> None:
    say("message", text=message.text)


@worker.handler
async def handle(task: Task) -> object:
    about = {"task": task.id, "attempt": task.attempt}
    say("start", **about)
    try:
        return await obey(task)
    except (asyncio.CancelledError, InterruptedTaskError):
        say("interrupted", **about, reason=task.interruption)
        about = {}
        raise
    finally:
        if about:
            say("end", **about)


async def obey(task: Task) -> object:
    command, _, rest = task.history[0].text.partition(" ")
    words = rest.split(" ")
    match command:
        case "echo":
            return rest
        case "sleep":
            await asyncio.sleep(int(words[0]) / 1000)
            return words[1]
        case "grow":
            count, pause = map(int, words)
            log = task.open_artifact("log")
            for i in range(1, count + 1):
                await asyncio.sleep(pause / 1000)
                await log.append(f"{i};", last=i == count)
            return None
        case "status":
            for word in words[1:]:
                await asyncio.sleep(int(words[0]) / 1000)
                await task.progress(word)
            return "done"
        case "ask":
            reply = await task.ask(rest)
            return reply.text
        case "listen":
            further = [message for message in task.history if message.role == "user"][1:]
            message = further[0] if further else await task.next_message()
            return message.text if message else None
        case "fail":
            raise Fail(rest)
        case "reject":
            raise Reject(rest)
        case "crash":
            return task.history[1000]
        case "file":
            await task.send_artifact(*task.message.files, id="file")
            return None
        case "make":
            content = bytes(i % 251 for i in range(int(words[0])))
            file = FilePart(content, words[1], "application/octet-stream")
            await task.send_artifact(file, id="file")
            return None
        case "friction":
            outcome = await task.friction(
                rest, title=f"Friction {rest}", category="performance", problem="It is slow."
            )
            return "counted" if outcome["counted"] else "not counted"
    raise Fail(f"unknown command {command!r}")


say("ready")
try:
    worker.run()
except APIError as error:
    say("refused", status=error.status)
    sys.exit(1)
say("stopped")
