"""Tests a server with the official MCP SDK for Python, over HTTP with a key and over stdio."""
import asyncio
import os

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

BASE, KEY, PROGRAM = (os.environ[name] for name in ("PARLEY_URL", "PARLEY_KEY", "PARLEY_PROGRAM"))
PROPOSAL = {
    "title": "Retry the deploy step", "category": "reliability", "problem": "It fails on a busy registry.",
    "suggested_fix": "Retry it three times.", "priority": "high",
}


def ok(what):
    print(f"ok   {what}", flush=True)


def equal(got, want):
    if got != want:
        raise AssertionError(f"got  {got!r}\nwant {want!r}")


async def tour(name, client):
    tools = await client.list_tools()
    equal(sorted(t.name for t in tools.tools), [
        "cancel_task", "find_agent", "get_proposal", "get_task", "list_agents", "list_events", "list_proposals", "report_friction", "send_task",
        "submit_proposal", "vote_on_proposal", "withdraw_vote",
    ])
    ok(f"{name}: lists the tools")

    async def call(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        if result.is_error:
            raise AssertionError(result.content)
        return result.structured_content

    filed = await call("submit_proposal", **PROPOSAL)
    equal({k: filed[k] for k in (*PROPOSAL, "status", "submitted_by")}, PROPOSAL | {"status": "open", "submitted_by": "user:ada"})
    equal((await call("get_proposal", id=filed["id"]))["problem"], PROPOSAL["problem"])
    equal((await call("vote_on_proposal", id=filed["id"], vote="for"))["votes_for"], 1)
    ok(f"{name}: submits a proposal, reads it and votes on it")

    done = await call("send_task", agent="echo", message="Are you there?")
    equal((done["state"], done["artifacts"][0]["parts"][0]["text"]), ("completed", "Are you there?"))
    ok(f"{name}: sends a task and waits for it")

    refused = await client.call_tool("submit_proposal", PROPOSAL | {"category": "weather"})
    equal((refused.is_error, "/category" in refused.content[1].text), (True, True))
    ok(f"{name}: the error names the wrong argument")


async def over_http(key, statuses):
    async def note(response):
        statuses.add(response.status_code)

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60, event_hooks={"response": [note]}) as http:
        async with Client(streamable_http_client(f"{BASE}/mcp", http_client=http)) as client:
            await tour("http", client)


async def main():
    await over_http(KEY, set())
    async with Client(StdioServerParameters(command=PROGRAM, args=["mcp", "--server", BASE], env={"PARLEY_KEY": KEY})) as client:
        await tour("stdio", client)
    for what, key in (("no key", ""), ("a bad key", "parley_bad")):
        statuses = set()
        try:
            await over_http(key, statuses)
        except Exception:  # noqa: BLE001 # the SDK does not report the status
            equal(statuses, {401})
            ok(f"{what} is refused")


asyncio.run(main())
