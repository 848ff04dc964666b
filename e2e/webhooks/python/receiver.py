"""Receives recorded deliveries of webhooks, one JSON object per line of standard input:

    {"format", "secret" or "public_key", "headers", "body"}

and prints for each {"event": what the library parsed} or {"error": why it was refused}.
"""
import base64
import json
import sys

from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook, WebhookVerificationError


def verify_asymmetric(public_key, headers, body):
    """Verify a v1a signature. The library has only v1."""
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key.removeprefix("whpk_"), validate=True))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    for signature in headers["webhook-signature"].split(" "):
        version, _, value = signature.partition(",")
        if version == "v1a":
            key.verify(base64.b64decode(value, validate=True), signed)
            return
    raise WebhookVerificationError("no v1a signature")


def receive(request):
    headers, body = request["headers"], request["body"].encode()
    if request.get("public_key"):
        verify_asymmetric(request["public_key"], headers, body)
        event = json.loads(body)
    else:
        event = Webhook(request["secret"]).verify(body, headers)
    if request["format"] != "cloudevents":
        return event
    parsed = from_http_event(HTTPMessage(headers, body))
    attributes = parsed.get_attributes()
    return {**attributes, "time": attributes["time"].isoformat(), "data": parsed.get_data()}


for line in sys.stdin:
    try:
        answer = {"event": receive(json.loads(line))}
    except (WebhookVerificationError, InvalidSignature) as error:
        answer = {"error": str(error) or type(error).__name__}
    print(json.dumps(answer), flush=True)
