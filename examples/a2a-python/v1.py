"""Calls an agent with the official Python SDK, a2a-sdk 1.x.

    PARLEY_KEY=... python3 v1.py http://127.0.0.1:8080/a2a/echo 'Hello'

The result goes to stdout, the states of the task to stderr.
"""
import asyncio
import os
import sys

import httpx
from a2a.client import ClientConfig, create_client
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.helpers import get_artifact_text, get_message_text, new_text_message
from a2a.types import Role, SendMessageRequest, TaskState


class Key(CredentialService):
    async def get_credentials(self, security_scheme_name, context):
        return os.environ["PARLEY_KEY"]


async def main(address, text):
    # The HTTP client gives up after 5 seconds without an event unless it is told otherwise.
    config = ClientConfig(httpx_client=httpx.AsyncClient(timeout=60))
    async with await create_client(address, config, interceptors=[AuthInterceptor(Key())]) as client:
        request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
        async for event in client.send_message(request):
            if event.HasField("artifact_update"):
                print(get_artifact_text(event.artifact_update.artifact))
            elif event.HasField("message"):
                print(get_message_text(event.message))
            elif event.HasField("status_update"):
                print(TaskState.Name(event.status_update.status.state), file=sys.stderr)


if len(sys.argv) != 3:
    sys.exit(__doc__)
asyncio.run(main(*sys.argv[1:]))
