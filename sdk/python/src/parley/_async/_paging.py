"""Iterators over the pages of lists."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from .._request import Request
from ._transport import AsyncTransport

_FULL_PAGE = "100"


async def cursor_pages(
    transport: AsyncTransport, request: Request, member: str
) -> AsyncIterator[Any]:
    """Yield the items of all pages of a list with cursors."""
    request.query["limit"] = _FULL_PAGE
    while True:
        page = await transport.call(request)
        for item in page[member]:
            yield item
        cursor = page.get("next_cursor")
        if not cursor:
            return
        request.query["cursor"] = cursor


async def numbered_pages(
    transport: AsyncTransport, request: Request, member: str
) -> AsyncIterator[Any]:
    """Yield the items of all pages of a list with page numbers."""
    request.query["limit"] = _FULL_PAGE
    seen = 0
    while True:
        page = await transport.call(request)
        for item in page[member]:
            yield item
        seen += len(page[member])
        if not page[member] or seen >= page["total"]:
            return
        request.query["page"] = str(page["page"] + 1)
