"""Verifies the requests of webhooks (Standard Webhooks)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from time import time
from typing import Any

from .errors import ConfigurationError, WebhookSignatureError

__all__ = ["WebhookEvent", "verify_webhook"]


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
        WebhookSignatureError: the signature is wrong, or the request is too old.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        id, timestamp = given["webhook-id"], given["webhook-timestamp"]  # noqa: A001
        signatures = given["webhook-signature"].split(" ")
    except KeyError as error:
        raise WebhookSignatureError(f"the request has no header {error.args[0]}") from None
    if not timestamp.isdecimal():
        raise WebhookSignatureError("webhook-timestamp is not a number")
    if abs((time() if now is None else now) - int(timestamp)) > tolerance:
        raise WebhookSignatureError(f"the request is not from the last {tolerance:g} seconds")
    signed = b".".join([id.encode(), timestamp.encode(), body])
    expected = base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest()).decode()
    matches = [
        hmac.compare_digest(f"v1,{expected}".encode(), signature.encode())
        for signature in signatures
    ]
    if not any(matches):
        raise WebhookSignatureError("the signature is wrong")
    payload = json.loads(body)
    return WebhookEvent(id, payload)


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise ConfigurationError("secret is not one of a webhook; it begins with whsec_") from error
