"""W3C Trace Context of the current task."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["Trace", "current_trace"]


@dataclass(frozen=True)
class Trace:
    """A span in W3C Trace Context: the values of the headers traceparent and tracestate."""

    parent: str
    state: str = ""

    def headers(self) -> dict[str, str]:
        """Return the headers of a request that belongs to the trace."""
        headers = {"traceparent": self.parent}
        if self.state:
            headers["tracestate"] = self.state
        return headers


current_trace: ContextVar[Trace | None] = ContextVar("parley_trace", default=None)
"""The trace that requests belong to. A worker sets it for the handler of a task."""
