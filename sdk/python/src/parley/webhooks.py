"""Verifies the requests of webhooks (Standard Webhooks)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from time import time
from typing import Any

from ._json import parse_json
from .errors import ConfigurationError, WebhookSignatureError

__all__ = ["WebhookEvent", "verify_webhook"]

_MAX_DIGITS = 15


@dataclass(frozen=True)
class WebhookEvent:
    """A verified request."""

    id: str
    """Identifies the event: the same for each delivery, so keep it to recognize repetitions."""
    payload: dict[str, Any]
    """The body, in the format of the webhook."""


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secret: str,
    *,
    tolerance: float = 300,
    now: float | None = None,
) -> WebhookEvent:
    """Return the event of a request, if the Parley server signed it.

    Args:
        body: The body as it was received, not decoded and encoded again.
        headers: The headers of the request; case does not matter.
        secret: The secret of the webhook, whsec_…
        tolerance: How many seconds old the request may be.
        now: The current time in seconds; by default that of the clock.

    Raises:
        WebhookSignatureError: the signature is wrong, the request is too old or malformed.
        ConfigurationError: the secret is not one of a webhook.
    """
    key = _key(secret)
    given = {name.lower(): value for name, value in headers.items()}
    try:
        id, timestamp = given["webhook-id"], given["webhook-timestamp"]  # noqa: A001
        signatures = given["webhook-signature"].split(" ")
    except KeyError as error:
        raise WebhookSignatureError(f"the request has no header {error.args[0]}") from None
    if not (timestamp.isdecimal() and len(timestamp) <= _MAX_DIGITS):
        raise WebhookSignatureError("webhook-timestamp is not a number")
    if abs((time() if now is None else now) - int(timestamp)) > tolerance:
        raise WebhookSignatureError(f"the request is not from the last {tolerance:g} seconds")
    signed = b".".join([_encoded(id), _encoded(timestamp), body])
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    matches = [hmac.compare_digest(expected, _encoded(signature)) for signature in signatures]
    if not any(matches):
        raise WebhookSignatureError("the signature is wrong")
    return WebhookEvent(id, _payload(body))


def _encoded(header: str) -> bytes:
    try:
        return header.encode()
    except UnicodeEncodeError as error:  # a lone surrogate
        raise WebhookSignatureError("a header of the request is not valid text") from error


def _payload(body: bytes) -> dict[str, Any]:
    try:
        payload = parse_json(body)
    except ValueError as error:
        raise WebhookSignatureError("the body is not a JSON object") from error
    if not isinstance(payload, dict):
        raise WebhookSignatureError("the body is not a JSON object")
    return payload


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError as error:
        raise ConfigurationError("secret is not one of a webhook; it begins with whsec_") from error
    if not key:  # anyone can sign with an empty key
        raise ConfigurationError("secret is empty; it is the whsec_… of the webhook")
    return key
