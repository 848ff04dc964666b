# Generated from parley._async by scripts/generate.py. Do not edit.
"""Iterators over the pages of lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._request import Request
from ._transport import Transport

_FULL_PAGE = "100"


def cursor_pages(transport: Transport, request: Request, member: str) -> Iterator[Any]:
    """Yield the items of all pages of a list with cursors."""
    request.query["limit"] = _FULL_PAGE
    while True:
        page = transport.call(request)
        for item in page[member]:
            yield item
        cursor = page.get("next_cursor")
        if not cursor:
            return
        request.query["cursor"] = cursor


def numbered_pages(transport: Transport, request: Request, member: str) -> Iterator[Any]:
    """Yield the items of all pages of a list with page numbers."""
    request.query["limit"] = _FULL_PAGE
    seen = 0
    while True:
        page = transport.call(request)
        for item in page[member]:
            yield item
        seen += len(page[member])
        if not page[member] or seen >= page["total"]:
            return
        request.query["page"] = str(page["page"] + 1)
