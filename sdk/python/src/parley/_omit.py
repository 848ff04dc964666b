"""A value that stands for an argument that is not given, where None has a meaning of its own."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal

__all__ = ["OMIT", "Omit"]


class _Omit(Enum):
    OMIT = "OMIT"

    def __bool__(self) -> Literal[False]:
        return False


Omit = Literal[_Omit.OMIT]
OMIT: Final = _Omit.OMIT


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are given."""
    return {name: value for name, value in values.items() if value is not OMIT}
