"""Receives the events of a webhook and prints them.

pip install standardwebhooks
WEBHOOK_SECRET=whsec_… python3 receiver.py 9010
"""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

verifier = Webhook(os.environ["WEBHOOK_SECRET"])
seen = set()  # a real receiver keeps the ids in its database


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers["Content-Length"]), 1 << 20))
        try:
            event = verifier.verify(body, dict(self.headers))
        except WebhookVerificationError:
            self.send_error(401, "the signature is wrong")
            return
        if self.headers["webhook-id"] not in seen:
            seen.add(self.headers["webhook-id"])
            print(event["type"], event["subject"], event["actor"], flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
print(f"receiving at http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
