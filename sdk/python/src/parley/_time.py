"""Times of the API."""

from __future__ import annotations

import re
from datetime import datetime

__all__ = ["parse_time"]

_FRACTION = re.compile(r"\.(\d+)")


def parse_time(text: str) -> datetime:
    """Return a time of the API (RFC 3339), which Python 3.10 cannot read by itself."""
    text = _FRACTION.sub(lambda match: "." + match[1][:6].ljust(6, "0"), text, count=1)
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
