"""A worker for a Parley agent, with Python's standard library alone.

    PARLEY_KEY=... python3 worker.py AGENT

The key needs the scope svc:a2a:serve. Put your own work into handle().
"""
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

if len(sys.argv) != 2:
    sys.exit(__doc__)
BASE = os.environ.get("PARLEY_SERVER", "http://127.0.0.1:8080") + "/api/v1/agents/" + sys.argv[1]
HEADERS = {"Authorization": "Bearer " + os.environ["PARLEY_KEY"], "Content-Type": "application/json"}


def handle(text, canceled):
    """Do the work and return its result. Stop early when canceled.is_set()."""
    return "You said: " + text


def call(method, path, body=None):
    request = urllib.request.Request(BASE + path, json.dumps(body or {}).encode(), HEADERS, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read() or "{}")


def keep(lease, finished, canceled):
    """Extend the lease until the work is finished; notice when the sender cancels."""
    while not finished.wait(1.5):
        try:
            if call("POST", "/leases/" + lease, {"extend_seconds": 30})["canceled"]:
                canceled.set()
        except urllib.error.HTTPError as error:
            if error.code == 409:  # another worker has the task
                canceled.set()
        except OSError:
            pass  # the next one may arrive


def work(task):
    finished, canceled = threading.Event(), threading.Event()
    threading.Thread(target=keep, args=(task["lease"], finished, canceled), daemon=True).start()
    path = "/leases/" + task["lease"]
    try:
        text = "\n".join(part["text"] for part in task["message"]["parts"] if part["type"] == "text")
        report = {"status": "completed", "artifacts": [{"type": "text", "parts": [{"type": "text", "text": handle(text, canceled)}]}]}
    except SystemExit:
        call("DELETE", path)  # back to the queue, at once
        raise
    except Exception as error:
        report = {"status": "failed", "message": {"parts": [{"type": "text", "text": str(error)}]}}
    finally:
        finished.set()
    if not canceled.is_set():
        call("POST", path, report)


for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: sys.exit(0))
received = []  # direct messages, confirmed by the next claim
while True:
    try:
        claim = call("POST", "/claim", {"worker": f"python-{os.getpid()}", "wait_seconds": 20, "ack": received})
        received = [message["id"] for message in claim["messages"]]
        for task in claim["tasks"]:
            work(task)
    except urllib.error.HTTPError as error:
        print(error, error.read().decode(), file=sys.stderr)
        if error.code in (401, 403, 404):
            sys.exit(1)
        time.sleep(2)
    except OSError as error:
        print(error, file=sys.stderr)
        time.sleep(2)
