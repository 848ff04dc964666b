"""Turns asynchronous code into the same code that blocks.

It replaces words, so the code must use only what has a counterpart below.
"""

from __future__ import annotations

import re

HEADER = "# Generated from parley._async by scripts/generate.py. Do not edit.\n"

WORDS = {
    "AsyncIterator": "Iterator",
    "AsyncClient": "Client",
    "AsyncAgentClient": "AgentClient",
    "AsyncResource": "Resource",
    "AsyncTransport": "Transport",
    "_async": "_sync",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aread": "read",
    "aiter_bytes": "iter_bytes",
    "aclosing": "closing",
    "asynchronous": "blocking",
}
CODE = (
    (re.compile(r"\bimport asyncio\b"), "import time"),
    (re.compile(r"\basyncio\.sleep\b"), "time.sleep"),
    (re.compile(r"\basync (def|for|with)\b"), r"\1"),
    (re.compile(r"\bawait "), ""),
    (re.compile(r"\bAsync(?=[A-Z]\w*Resource\b)"), ""),
)


def blocking(source: str) -> str:
    """Return the blocking form of a module."""
    for pattern, replacement in CODE:
        source = pattern.sub(replacement, source)
    source = re.sub(r"\w+", lambda word: WORDS.get(word[0], word[0]), source)
    return HEADER + source
