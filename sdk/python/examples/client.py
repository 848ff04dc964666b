"""Sends a task to an agent and prints its result as it grows.

PARLEY_KEY=… python examples/client.py echo 'Hello from Python'
"""

import sys

from parley import Client


def main(agent: str, text: str) -> None:
    """Send the text to the agent."""
    with Client() as client:
        for event in client.agent(agent).stream(text):
            if event.status:
                print(event.status.state, file=sys.stderr)
            if event.artifact:
                print(event.artifact.text, end="", flush=True)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
