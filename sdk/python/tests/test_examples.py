"""The examples run as their first lines say."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import Server

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_the_client_prints_what_the_worker_writes(server: Server) -> None:
    agent = server.hire()
    environment = {**os.environ, "PARLEY_SERVER": server.url}
    worker = subprocess.Popen(
        [sys.executable, EXAMPLES / "worker.py", agent.id],
        env={**environment, "PARLEY_KEY": agent.key},
    )
    try:
        sent = subprocess.run(
            [sys.executable, EXAMPLES / "client.py", agent.id, "Hello"],
            env={**environment, "PARLEY_KEY": server.key},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert sent.stderr.split()[-1] == "input-required"
        with server.client() as client:
            [task] = client.agent(agent.id).tasks()
            done = client.agent(agent.id).send("people", id=task.id, wait=30)
        assert done.text == "Hello, for people "
    finally:
        worker.terminate()
        assert worker.wait() == 0
