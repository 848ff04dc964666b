"""Starts the server that the tests use. PARLEY_BINARY names the program."""

import asyncio
import os
import re
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from parley import AsyncClient, Client, Worker


@dataclass
class Server:
    """A server of its own, which a test may kill and start again."""

    data: Path
    key: str = ""
    url: str = ""
    process: "subprocess.Popen[str] | None" = field(default=None)

    def start(self) -> None:
        """Start the server, on the same port as before."""
        listen = self.url.removeprefix("http://") or "127.0.0.1:0"
        command = [
            os.environ["PARLEY_BINARY"],
            "serve",
            "--listen",
            listen,
            "--data",
            str(self.data),
        ]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PARLEY_")}
        self.process = subprocess.Popen(
            [*command, "--rate-limit", "0", "--outbound-allow", "127.0.0.1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if "msg=serving" in line:
                break
        else:
            raise RuntimeError(f"the server did not start:\n{said}")
        self.url = re.search(r"http://127\S+", said)[0]  # type: ignore[index]
        if not self.key:
            self.key = re.search(r"parley_\w+", said)[0]  # type: ignore[index]

    def kill(self) -> None:
        """End the server without any warning."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def client(self) -> Client:
        """Return a client of the admin."""
        return Client(self.url, self.key)

    def hire(self, name: str | None = None, *more: str) -> "Agent":
        """Create an agent, and a key for its worker, with more scopes if they are given."""
        name = name or f"agent-{uuid.uuid4().hex[:12]}"
        scopes = ("svc:a2a:serve", "svc:tasks:write", "svc:tasks:read", *more)
        with self.client() as client:
            client.agents.create(id=name, name=name)
            key = client.keys.create(principal=f"agent:{name}", scopes=scopes)
        return Agent(self, name, key["secret"])


@dataclass
class Agent:
    """An agent and the key of its worker."""

    server: Server
    id: str
    key: str

    def worker(self, **options: object) -> Worker:
        """Return a worker of the agent."""
        return Worker(self.id, server=self.server.url, key=self.key, **options)  # type: ignore[arg-type]


@asynccontextmanager
async def working(worker: Worker) -> AsyncIterator[Worker]:
    """Run a worker in the background."""
    serving = asyncio.create_task(worker.serve())
    try:
        yield worker
    finally:
        worker.stop()
        await serving


def _server() -> Iterator[Server]:
    if "PARLEY_BINARY" not in os.environ:
        pytest.exit("PARLEY_BINARY must name the parley program: make build", returncode=2)
    with tempfile.TemporaryDirectory() as data:
        server = Server(Path(data))
        server.start()
        yield server
        server.kill()


server = pytest.fixture(_server, scope="session", name="server")
own_server = pytest.fixture(_server, name="own_server")


@pytest.fixture
def agent(server: Server) -> Agent:
    """Return an agent of the shared server."""
    return server.hire()


@pytest.fixture
def caller(server: Server) -> Agent:
    """Return an agent of the shared server that may call other agents."""
    return server.hire(None, "svc:a2a:write")


@pytest.fixture
async def sender(server: Server) -> AsyncIterator[AsyncClient]:
    """Return the admin's client, to send tasks with."""
    async with AsyncClient(server.url, server.key) as client:
        yield client


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """Return the admin's client."""
    with server.client() as client:
        yield client
