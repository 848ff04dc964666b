import json, os, time, urllib.error, urllib.request

BASE = "http://127.0.0.1:8080/api/v1/agents/scout"
HEADERS = {"Authorization": "Bearer " + os.environ["PARLEY_KEY"], "Content-Type": "application/json"}


def post(path, body):
    request = urllib.request.Request(BASE + path, json.dumps(body).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


while True:
    try:
        # A lease lasts as long as the work may take; extend_seconds prolongs it.
        claim = post("/claim", {"worker": "python", "wait_seconds": 20, "lease_seconds": 300})
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{error}: {error.read().decode()}")
    except OSError as error:
        print(error)
        time.sleep(2)
        continue
    for task in claim["tasks"]:
        text = "\n".join(part["text"] for part in task["message"]["parts"] if part["type"] == "text")
        answer = {"type": "text", "parts": [{"type": "text", "text": "You said: " + text}]}
        post("/leases/" + task["lease"], {"status": "completed", "artifacts": [answer]})
