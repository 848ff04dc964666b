"""What the package has besides its behaviour."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import parley
from parley._sse import ServerSentEvent, SSEDecoder

ROOT = Path(__file__).resolve().parent.parent


def test_generated_files_are_current() -> None:
    """If this fails: python sdk/python/scripts/generate.py."""
    command = [sys.executable, ROOT / "scripts" / "generate.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_all_names_exist_and_are_sorted() -> None:
    for name in ("parley", "parley.errors", "parley.content", "parley.worker"):
        module = importlib.import_module(name)
        assert [n for n in module.__all__ if not hasattr(module, n)] == []
    assert len(set(parley.__all__)) == len(parley.__all__)


def test_httpx_is_the_only_dependency() -> None:
    allowed = {"httpx", *sys.stdlib_module_names}
    found = set()
    for file in (ROOT / "src" / "parley").rglob("*.py"):
        if "adapters" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module.partition(".")[0])
    assert found - allowed == set()


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("a2a", "a2a"),
        ("adk", "adk"),
        ("crewai", "crewai"),
        ("langgraph", "langgraph"),
        ("openai_agents", "openai-agents"),
    ],
)
def test_an_adapter_names_its_missing_extra(module: str, extra: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'parley-sdk\[{extra}\]'"):
        importlib.import_module(f"parley.adapters.{module}")


def test_events_are_split_at_line_feeds_only() -> None:
    stream = (
        'retry: 1500\r\nid: 1\ndata: {"a": "x\u0085\u2028y"}\n\n'
        ": comment\n\nid: 2\n\ndata: 1\ndata: 2\n\n"
    )
    whole = list(SSEDecoder().feed(stream.encode()))
    assert whole == [
        ServerSentEvent("1", "", '{"a": "x\u0085\u2028y"}'),
        ServerSentEvent("2"),
        ServerSentEvent("", "", "1\n2"),
    ]
    decoder = SSEDecoder()
    by_bytes = [event for byte in stream.encode() for event in decoder.feed(bytes([byte]))]
    assert by_bytes == whole
    assert decoder.retry == 1.5
