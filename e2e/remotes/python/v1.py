"""A remote agent on the official Python server of version 1.0, for the tests of relays.

    v1.py PORT RELEASE

Its messages are its script; see relay_official_test.go. RELEASE is a file: tasks that wait go on
when it exists. Each message that arrives, and each cancel, is a line on stdout.
"""
import asyncio
import pathlib
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette

PORT, RELEASE = int(sys.argv[1]), pathlib.Path(sys.argv[2])


class Actor(AgentExecutor):
    async def execute(self, context, event_queue):
        print("got", context.message.message_id, flush=True)
        text = context.get_user_input()
        verb, _, what = text.partition(" ")
        if context.current_task is not None:
            verb, what = "say", text
        else:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work(updater.new_agent_message([new_text_part("working on " + what)]))
        if verb == "ask":
            await updater.requires_input(updater.new_agent_message([new_text_part(what)]))
            return
        while verb == "wait" and not RELEASE.exists():
            await asyncio.sleep(0.05)
        if verb == "file":
            part = Part(raw=what.encode() * 1000, filename="result.bin", media_type="application/octet-stream")
            await updater.add_artifact([part], name="file")
        else:
            await updater.add_artifact([new_text_part(what)], artifact_id="a", name="result", append=False)
            await updater.add_artifact([new_text_part("!")], artifact_id="a", append=True, last_chunk=True)
        await updater.complete()

    async def cancel(self, context, event_queue):
        print("canceled", context.task_id, flush=True)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="Remote", description="Plays a remote agent.", version="1.2.3",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"], default_output_modes=["text/plain"],
    skills=[AgentSkill(id="play", name="Play", description="Plays.", tags=["theatre"])],
    supported_interfaces=[
        AgentInterface(url=f"http://127.0.0.1:{PORT}/", protocol_binding="JSONRPC", protocol_version="1.0"),
    ],
)
handler = DefaultRequestHandlerV2(agent_executor=Actor(), task_store=InMemoryTaskStore(), agent_card=card)
app = Starlette(routes=create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/"))
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="error")
