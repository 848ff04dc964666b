"""The errors that this package raises. All of them are a `ParleyError`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

__all__ = [
    "APIConnectionError",
    "APIError",
    "AuthenticationError",
    "ConfigurationError",
    "ConflictError",
    "EventsReset",
    "Fail",
    "FieldError",
    "FinishedError",
    "InterruptedTaskError",
    "Interruption",
    "NotFoundError",
    "ParleyError",
    "PermissionDeniedError",
    "PreconditionFailedError",
    "RateLimitError",
    "Reject",
    "ServerError",
    "UnexpectedResponseError",
    "ValidationError",
    "WebhookSignatureError",
]


class ParleyError(Exception):
    """The base of all errors of this package."""


class ConfigurationError(ParleyError, ValueError):
    """An argument, or the environment variable in its place, is missing or invalid."""


class UnexpectedResponseError(ParleyError):
    """The response is not one of a Parley server."""


class WebhookSignatureError(ParleyError):
    """The request is not from the Parley server, or it is too old."""


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field of a request."""

    name: str
    """The parameter, or the path of the field in the body, such as `message/parts/0`."""
    detail: str
    location: str = "body"
    """`body`, `query`, `path` or `header`."""


class APIError(ParleyError):
    """The server refused a request.

    Subclasses name the usual reasons; `code` is the stable name of the exact one.
    """

    default_advice: ClassVar[str] = ""

    status: int
    """Status of the HTTP response; 200 if the refusal is a JSON-RPC error."""
    code: str
    """Stable name of the reason, such as `proposal.transition_not_allowed`."""
    message: str
    """What is wrong, in a sentence."""
    fields: Sequence[FieldError]
    """What is wrong with fields of the request."""
    allowed: Sequence[str]
    """What the state of the record allows instead."""
    scope: str
    """The scope that the key lacks."""
    request_id: str
    """For questions to the operator of the server."""
    retry_after: float
    """How many seconds the server asks to wait; 0 if it does not."""
    rpc_code: int
    """Code of a JSON-RPC error, such as -32001; 0 if there is none."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str = "",
        fields: Sequence[FieldError] = (),
        allowed: Sequence[str] = (),
        scope: str = "",
        request_id: str = "",
        retry_after: float = 0,
        rpc_code: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.fields = tuple(fields)
        self.allowed = tuple(allowed)
        self.scope = scope
        self.request_id = request_id
        self.retry_after = retry_after
        self.rpc_code = rpc_code

    @property
    def advice(self) -> str:
        """What to do about it; empty if the message says it."""
        if self.scope:
            return f"use a key with the scope {self.scope}"
        if self.allowed:
            return f"possible now: {', '.join(self.allowed)}"
        if self.retry_after:
            return f"try again in {self.retry_after:g} seconds"
        return self.default_advice

    def __str__(self) -> str:
        text = f"{self.message} ({self.code or self.rpc_code or self.status})"
        details = [f"{field.name}: {field.detail}" for field in self.fields]
        return "; ".join([text, *details, *filter(None, [self.advice])])


class ValidationError(APIError):
    """The request is malformed or has invalid fields (400, 413, 415, 422)."""


class AuthenticationError(APIError):
    """The key is missing, unknown, expired or revoked (401)."""

    default_advice = "check PARLEY_KEY, or the key argument"


class PermissionDeniedError(APIError):
    """The key may not do this (403)."""


class NotFoundError(APIError):
    """The record does not exist, or the key may not see it (404)."""


class ConflictError(APIError):
    """The state of the record does not allow this (409)."""


class PreconditionFailedError(APIError):
    """The record has changed since it was read (412)."""

    default_advice = "read the record again"


class RateLimitError(APIError):
    """Too many requests (429)."""


class ServerError(APIError):
    """The server failed, or is not available now (5xx)."""


_BY_STATUS: Mapping[int, type[APIError]] = {
    400: ValidationError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    412: PreconditionFailedError,
    413: ValidationError,
    415: ValidationError,
    422: ValidationError,
    429: RateLimitError,
}


def error_class(status: int) -> type[APIError]:
    """Return the class for a status of HTTP."""
    return _BY_STATUS.get(status, ServerError if status >= 500 else APIError)


class APIConnectionError(ParleyError):
    """A request got no response, or only a part of it."""

    not_sent: bool
    """The request certainly did not reach the server. Otherwise it may have been carried out."""
    permanent: bool
    """The same request cannot succeed later: wrong scheme, or a certificate that is not trusted."""

    def __init__(self, message: str, *, not_sent: bool = False, permanent: bool = False) -> None:
        super().__init__(message)
        self.not_sent = not_sent
        self.permanent = permanent


class EventsReset(ParleyError):  # noqa: N818 - it is a condition that the caller may expect
    """Some events are no longer kept; continue after `last_seq`."""

    def __init__(self, last_seq: int) -> None:
        super().__init__("some events are no longer kept; follow again from the oldest one")
        self.last_seq = last_seq


class Interruption(str, Enum):
    """Why the worker stopped a handler."""

    CANCELED = "canceled"
    """The sender canceled the task."""
    LEASE_LOST = "lease-lost"
    """The server could not be reached, and the task goes to another worker."""
    STOPPING = "stopping"
    """This worker is stopping; the task goes back to the queue."""

    def __str__(self) -> str:
        return self.value


class InterruptedTaskError(ParleyError):
    """The task was canceled, the lease was lost, or the worker is stopping. See `reason`."""

    def __init__(self, reason: Interruption) -> None:
        super().__init__(f"the task was interrupted: {reason}")
        self.reason = reason


class FinishedError(ParleyError):
    """The handler has already ended this task."""

    def __init__(self) -> None:
        super().__init__("the task is already finished")


class Fail(ParleyError):  # noqa: N818 - reads as a statement: raise Fail("no such order")
    """Raise it in a handler to fail the task with a text for the sender.

    Of any other exception the sender learns only that the agent failed.
    """


class Reject(ParleyError):  # noqa: N818 - reads as a statement: raise Reject("no")
    """Raise it in a handler to reject the task: the agent does not do such tasks."""


def problem_error(
    problem: Mapping[str, Any], *, status: int, request_id: str = "", retry_after: float = 0
) -> APIError:
    """Return the error of a problem document (RFC 9457)."""
    return error_class(status)(
        problem.get("detail") or problem.get("title") or f"the server responded with {status}",
        status=status,
        code=problem.get("code") or "",
        fields=[_field(entry) for entry in problem.get("errors") or ()],
        allowed=problem.get("allowed") or (),
        scope=problem.get("scope") or "",
        request_id=problem.get("request_id") or request_id,
        retry_after=retry_after,
    )


def _field(entry: Mapping[str, Any]) -> FieldError:
    name = entry.get("parameter") or (entry.get("pointer") or "").removeprefix("/")
    return FieldError(name, entry.get("detail") or "", entry.get("in") or "body")


_RPC_STATUS: Mapping[int, int] = {-32001: 404, -32002: 409, -32602: 422, -32600: 400, -32603: 500}


def rpc_error(
    error: Mapping[str, Any], *, status: int, request_id: str = "", retry_after: float = 0
) -> APIError:
    """Return the error of a JSON-RPC response."""
    rpc_code = error.get("code") or 0
    code, scope = "", ""
    fields: list[FieldError] = []
    data = error.get("data")
    if isinstance(data, Mapping):
        code, scope = data.get("code") or "", data.get("scope") or ""
        request_id = data.get("request_id") or request_id
    for entry in data if isinstance(data, list) else ():
        metadata = entry.get("metadata") or {}
        if "@type" not in entry:
            fields.append(_field(entry))
        elif metadata.get("code"):
            code, scope = metadata["code"], metadata.get("scope") or ""
        request_id = entry.get("requestId") or request_id
        for violation in entry.get("fieldViolations") or ():
            path = violation.get("field", "").replace(".", "/")
            fields.append(FieldError(path, violation.get("description") or ""))
    kind = error_class(_RPC_STATUS.get(rpc_code, status) if status == 200 else status)
    return kind(
        error.get("message") or "the call failed",
        status=status,
        code=code,
        fields=fields,
        scope=scope,
        request_id=request_id,
        retry_after=retry_after,
        rpc_code=rpc_code,
    )
