"""Pauses between the attempts of a worker, which tries longer than a client."""

from __future__ import annotations

import random

from ..errors import APIConnectionError, APIError

_FIRST = 0.2
_LONGEST = 10.0
_LONGEST_RETRY_AFTER = 60.0


def may_pass(error: Exception) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, APIError):
        return error.status in (408, 429) or error.status >= 500
    return not (isinstance(error, APIConnectionError) and error.permanent)


def may_have_arrived(error: Exception) -> bool:
    """Whether the server may have carried out a failed request."""
    if isinstance(error, APIError):
        return error.status >= 500
    return not (isinstance(error, APIConnectionError) and error.not_sent)


class Backoff:
    """Growing pauses."""

    def __init__(self) -> None:
        self._tries = 0

    def reset(self) -> None:
        """Begin with a short pause again."""
        self._tries = 0

    def next(self, error: Exception | None = None) -> float:
        """Return the seconds to wait before the next attempt."""
        pause = float(min(_FIRST * 2 ** min(self._tries, 10), _LONGEST))
        self._tries += 1
        # Spread the pauses, so that workers do not come back all at once.
        pause *= random.uniform(0.5, 1)
        after = error.retry_after if isinstance(error, APIError) else 0.0
        return max(pause, min(after, _LONGEST_RETRY_AFTER))
