"""Requests to a webhook that are malformed, or signed for a wrong secret."""

import base64
import hashlib
import hmac

import pytest

from parley import ConfigurationError, WebhookSignatureError, verify_webhook

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
NOW = 1_700_000_000


def signed(body: bytes, *, key: bytes = b"0123456789abcdef0123456789abcdef") -> dict[str, str]:
    digest = hmac.new(key, b"msg_1.%d.%s" % (NOW, body), hashlib.sha256).digest()
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(NOW),
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


def test_a_signed_request_is_accepted() -> None:
    body = b'{"n": 1}'
    assert verify_webhook(body, signed(body), SECRET, now=NOW).payload == {"n": 1}


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_\u00e9", "whsec_a", "whsec_\ud800"])
def test_a_secret_that_is_none_is_refused(secret: str) -> None:
    body = b"{}"
    with pytest.raises(ConfigurationError):
        verify_webhook(body, signed(body, key=b""), secret, now=NOW)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("webhook-timestamp", "9" * 400),
        ("webhook-timestamp", "9" * 5_000),
        ("webhook-timestamp", "\u0661\u0667"),
        ("webhook-id", "\ud800"),
        ("webhook-signature", "v1,\ud800"),
    ],
)
def test_malformed_headers_are_a_wrong_signature(name: str, value: str) -> None:
    body = b"{}"
    with pytest.raises(WebhookSignatureError):
        verify_webhook(body, {**signed(body), name: value}, SECRET, now=float(NOW))


@pytest.mark.parametrize("body", [b"[]", b"null", b"no", b"\xff{}", b"[" * 100_000])
def test_a_signed_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(WebhookSignatureError, match="not a JSON object"):
        verify_webhook(body, signed(body), SECRET, now=NOW)
