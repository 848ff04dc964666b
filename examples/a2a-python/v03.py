"""Calls an agent with version 0.3 of the official Python SDK, a2a-sdk 0.3.

    PARLEY_KEY=... python3 v03.py http://127.0.0.1:8080/a2a/echo 'Hello'

The result goes to stdout, the states of the task to stderr.
"""
import asyncio
import os
import sys

import httpx
from a2a.client import ClientConfig, ClientFactory, create_text_message_object
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.types import Message, TaskArtifactUpdateEvent
from a2a.utils import get_artifact_text, get_message_text


class Key(CredentialService):
    async def get_credentials(self, security_scheme_name, context):
        return os.environ["PARLEY_KEY"]


async def main(address, text):
    # The HTTP client gives up after 5 seconds without an event unless it is told otherwise.
    config = ClientConfig(httpx_client=httpx.AsyncClient(timeout=60))
    client = await ClientFactory.connect(address, config, interceptors=[AuthInterceptor(Key())])
    async for event in client.send_message(create_text_message_object(content=text)):
        if isinstance(event, Message):
            print(get_message_text(event))
            continue
        task, update = event
        if isinstance(update, TaskArtifactUpdateEvent):
            print(get_artifact_text(update.artifact))
        print(task.status.state.value, file=sys.stderr)
    await client.close()


if len(sys.argv) != 3:
    sys.exit(__doc__)
asyncio.run(main(*sys.argv[1:]))
