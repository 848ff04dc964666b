"""Files a proposal with the official MCP SDK for Python, mcp 2.x.

    PARLEY_KEY=... python3 client.py http://127.0.0.1:8080/mcp
"""
import asyncio
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main(address):
    headers = {"Authorization": "Bearer " + os.environ["PARLEY_KEY"]}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(address, http_client=http)) as client:
            tools = await client.list_tools()
            print(*sorted(tool.name for tool in tools.tools), file=sys.stderr)
            result = await client.call_tool("submit_proposal", {
                "title": "Retry the deploy step",
                "category": "reliability",
                "problem": "It fails when the registry is busy.",
                "suggested_fix": "Try it three times.",
            })
            if result.is_error:
                sys.exit(result.content[0].text)
            print(result.structured_content["id"], result.structured_content["status"])


if len(sys.argv) != 2:
    sys.exit(__doc__)
asyncio.run(main(sys.argv[1]))
