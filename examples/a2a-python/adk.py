"""Calls an agent with ADK's RemoteA2aAgent, google-adk 2.x.

    PARLEY_KEY=... python3 adk.py http://127.0.0.1:8080/a2a/echo 'Hello'

Prints what the agent said, as it stands in the session afterwards.
"""
import asyncio
import os
import sys

from fastapi.openapi.models import HTTPBearer
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai.types import Content, Part


async def main(address, text):
    key = HttpAuth(scheme="bearer", credentials=HttpCredentials(token=os.environ["PARLEY_KEY"]))
    agent = RemoteA2aAgent(
        name="remote",
        agent_card=f"{address}/.well-known/agent-card.json",
        auth_scheme=HTTPBearer(),
        auth_credential=AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=key),
    )
    sessions = InMemorySessionService()
    runner = Runner(agent=agent, app_name="example", session_service=sessions)
    session = await sessions.create_session(app_name="example", user_id="ada")
    message = Content(role="user", parts=[Part(text=text)])
    async for event in runner.run_async(user_id="ada", session_id=session.id, new_message=message):
        if event.error_message:
            sys.exit(event.error_message)
    session = await sessions.get_session(app_name="example", user_id="ada", session_id=session.id)
    for event in session.events:
        if event.author == agent.name and event.content:
            print("".join(part.text or "" for part in event.content.parts))


if len(sys.argv) != 3:
    sys.exit(__doc__)
asyncio.run(main(*sys.argv[1:]))
