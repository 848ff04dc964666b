"""The wheel, in an environment that has nothing else."""

import os
import re
import signal
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from conftest import Server

ROOT = Path(__file__).resolve().parent.parent


def test_the_wheel_runs_the_first_worker_of_the_readme(server: Server, tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        tmp_path,
    ]
    subprocess.run(build, cwd=ROOT, check=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "parley/py.typed" in names
    assert [name for name in names if "test" in name] == []

    clean = tmp_path / "clean"
    venv.create(clean, with_pip=True)
    python = clean / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--constraint", ROOT / "requirements.txt", wheel], check=True)

    code = first_worker()
    assert len([line for line in code.splitlines() if line]) <= 10
    program = tmp_path / "worker.py"
    program.write_text(code)
    agent = server.hire("scout")
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "PARLEY_SERVER": server.url,
        "PARLEY_KEY": agent.key,
    }
    worker = subprocess.Popen([python, program], env=environment, cwd=tmp_path)
    try:
        with server.client() as client:
            assert client.agent("scout").send("Hello", wait=30).text == "You said: Hello"
    finally:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait() == 0


def first_worker() -> str:
    """Return the first program of the README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]
