"""When a failed request is sent again, and after which pause."""

from __future__ import annotations

import random
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time

from .errors import APIConnectionError, APIError

__all__ = ["Retry"]


@dataclass(frozen=True)
class Retry:
    """Bounds of repetitions. `Retry(attempts=1)` turns them off.

    A request is repeated after 429, 502, 503, 504 and lost connections, if a repetition cannot do
    anything twice: reads, sends of tasks, and every POST and PATCH of the REST API, which get an
    `Idempotency-Key`. Others are repeated only if the server certainly did not carry them out.
    """

    attempts: int = 5
    """The maximum number of attempts."""
    min_wait: float = 0.2
    """Seconds before the second attempt. The pause doubles each time and varies by half."""
    max_wait: float = 3.0
    """The longest pause in seconds."""
    max_retry_after: float = 30.0
    """The longest `Retry-After` to wait for. If the server asks for more, the request fails."""

    def pause(self, error: Exception, attempt: int, *, repeatable: bool) -> float | None:
        """Return the seconds to wait before the next attempt, or None if there is none.

        Args:
            error: Why the last attempt failed.
            attempt: How many attempts there were.
            repeatable: Whether the request may reach the server twice.
        """
        wait = min(self.min_wait * 2 ** min(attempt - 1, 30), self.max_wait)
        wait *= random.uniform(0.5, 1.5)
        if isinstance(error, APIConnectionError):
            again = not error.permanent and (repeatable or error.not_sent)
            return wait if again else None
        if isinstance(error, APIError):
            again = error.retry_after <= self.max_retry_after and _passes(error, repeatable)
            return max(wait, error.retry_after) if again else None
        return None


def _passes(error: APIError, repeatable: bool) -> bool:
    """Whether the same request may succeed later.

    Only refusals of Parley, which have a code, mean that the request was not carried out. A proxy
    may send the same status for a request that was.
    """
    if error.status in (429, 503):
        return repeatable or bool(error.code)
    return error.status in (502, 504) and repeatable


def parse_retry_after(value: str | None) -> float:
    """Return the seconds of a Retry-After header; 0 if it is missing or invalid."""
    if not value:
        return 0
    if value.isdecimal():
        return min(float(value), float(1 << 20))  # int limits the number of digits
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except ValueError:
        return 0
