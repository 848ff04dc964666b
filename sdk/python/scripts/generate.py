"""Generates the parts of the package that follow from other files.

    python scripts/generate.py          write them
    python scripts/generate.py --check  fail if one is out of date

- src/parley/types.py and src/parley/_async/_resources.py from ../../api/openapi.yaml
- src/parley/_sync from src/parley/_async
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import openapi
import unasync

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "parley"
DOCUMENT = ROOT.parent.parent / "api" / "openapi.yaml"


def generate(package: Path) -> list[Path]:
    """Write all generated files below package and return them."""
    document = openapi.load(DOCUMENT)
    types, resources = package / "types.py", package / "_async" / "_resources.py"
    resources.parent.mkdir(parents=True, exist_ok=True)
    types.write_text(openapi.types(document))
    resources.write_text(openapi.resources(document))
    ruff(types, resources)
    files = [types, resources]
    folder = package / "_sync"
    folder.mkdir(exist_ok=True)
    for source in sorted(
        {*(PACKAGE / "_async").glob("*.py"), PACKAGE / "_async" / "_resources.py"}
    ):
        origin = resources if source.name == resources.name else source
        target = folder / source.name
        target.write_text(unasync.blocking(origin.read_text()))
        files.append(target)
    ruff(*files)
    return files


def ruff(*files: Path) -> None:
    """Format the files as the rest of the package."""
    config = ROOT / "pyproject.toml"
    for command in (["check", "--fix-only"], ["format"]):
        subprocess.run(
            [
                sys.executable,
                "-m",
                "ruff",
                *command,
                "--no-cache",
                "--quiet",
                "--config",
                config,
                *files,
            ],
            check=True,
        )


def main() -> None:
    """Write the files, or compare them with the ones in the checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if a file is out of date"
    )
    if not parser.parse_args().check:
        generate(PACKAGE)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "parley"
        folder.mkdir()
        fresh = {file.relative_to(folder): file.read_text() for file in generate(folder)}
    known = {Path("types.py"), *(f.relative_to(PACKAGE) for f in (PACKAGE / "_sync").glob("*.py"))}
    stale = [
        str(name)
        for name in sorted({*fresh, *known})
        if not (PACKAGE / name).exists() or fresh.get(name) != (PACKAGE / name).read_text()
    ]
    if stale:
        sys.exit(f"out of date: {', '.join(stale)}; run: python sdk/python/scripts/generate.py")


if __name__ == "__main__":
    main()
