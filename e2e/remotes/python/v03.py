"""A remote agent on the official Python server of version 0.3, for the tests of relays.

    v03.py PORT RELEASE

See v1.py.
"""
import asyncio
import base64
import pathlib
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, FilePart, FileWithBytes, Part, TextPart
from a2a.utils import new_task

PORT, RELEASE = int(sys.argv[1]), pathlib.Path(sys.argv[2])


def text_part(text):
    return Part(root=TextPart(text=text))


class Actor(AgentExecutor):
    async def execute(self, context, event_queue):
        print("got", context.message.message_id, flush=True)
        text = context.get_user_input()
        verb, _, what = text.partition(" ")
        if context.current_task is not None:
            verb, what = "say", text
        else:
            await event_queue.enqueue_event(new_task(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work(updater.new_agent_message([text_part("working on " + what)]))
        if verb == "ask":
            await updater.requires_input(updater.new_agent_message([text_part(what)]), final=True)
            return
        while verb == "wait" and not RELEASE.exists():
            await asyncio.sleep(0.05)
        if verb == "file":
            data = base64.b64encode(what.encode() * 1000).decode()
            file = FileWithBytes(bytes=data, name="result.bin", mime_type="application/octet-stream")
            await updater.add_artifact([Part(root=FilePart(file=file))], name="file")
        else:
            await updater.add_artifact([text_part(what)], artifact_id="a", name="result", append=False)
            await updater.add_artifact([text_part("!")], artifact_id="a", append=True, last_chunk=True)
        await updater.complete()

    async def cancel(self, context, event_queue):
        print("canceled", context.task_id, flush=True)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="Remote", description="Plays a remote agent.", version="1.2.3", url=f"http://127.0.0.1:{PORT}/",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"], default_output_modes=["text/plain"],
    skills=[AgentSkill(id="play", name="Play", description="Plays.", tags=["theatre"])],
)
handler = DefaultRequestHandler(agent_executor=Actor(), task_store=InMemoryTaskStore())
app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="error")
