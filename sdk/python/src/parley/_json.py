"""Reads JSON that others wrote."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _integer(digits: str) -> int | float:
    """Read an integer. One with more digits than `int` allows (4,300) becomes infinite.

    `json` reads 1e999 in the same way.
    """
    try:
        return int(digits)
    except ValueError:
        return float(digits)
