"""`make mutants`: seeds each bug of the catalogue into a copy of the repository, and shows which check notices it."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.mutants.catalogue import MUTANTS, Mutant

ROOT: Final = Path(__file__).parents[2]
COPIED: Final = ("src", "tests", "examples", "benchmarks", "docs", "deploy", "tools", "pyproject.toml", "README.md")
CHECK_S: Final = 600
#: The exit code of pytest when tests have failed. With any other one the check itself is broken.
FAILED: Final = 1


def main() -> None:
    """Runs the mutants whose names contain one of the words given; all of them without."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutants whose name contains one of these")
    chosen = selected(parser.parse_args().words)
    caught = 0
    with tempfile.TemporaryDirectory(prefix="rota-mutants-") as folder:
        copy = Path(folder)
        _copy_repository(copy)
        for mutant in chosen:
            start = time.monotonic()
            check = _first_check_that_fails(mutant, copy)
            caught += bool(check)
            said = f"caught by {check}" if check else "NOT CAUGHT"
            print(f"{mutant.name}: {said} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{caught} of {len(chosen)} mutants caught")
    sys.exit(0 if caught == len(chosen) else 1)


def mutated(mutant: Mutant, text: str) -> str:
    """The text of the mutant's file with the bug in it."""
    found = text.count(mutant.old)
    if found != 1:
        raise LookupError(f"{mutant.name}: {mutant.file} has the text {found} times: adapt the catalogue")
    return text.replace(mutant.old, mutant.new)


def _first_check_that_fails(mutant: Mutant, copy: Path) -> str:
    """The test that notices the bug; "" if none does."""
    file = copy / mutant.file
    original = file.read_text()
    file.write_text(mutated(mutant, original))
    try:
        for check in mutant.checks:
            if failed := _run_check(check, copy):
                return failed
        return ""
    finally:
        file.write_text(original)


def _run_check(check: str, copy: Path) -> str:
    """The first test of a check that fails; "" if all pass."""
    arguments = [word.replace("-and-", " and ") for word in shlex.split(check)]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    # Before the folder that the package was installed from.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (copy / "src", copy)))}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=CHECK_S, check=False
    )
    if done.returncode == 0:
        return ""
    failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if done.returncode != FAILED or not failed:
        raise RuntimeError(f"the check {check} did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return failed[0]


def _copy_repository(copy: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy2(source, copy / name)


def selected(words: Sequence[str]) -> list[Mutant]:
    """The mutants whose names contain one of the words; all of them without words."""
    return [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]


if __name__ == "__main__":
    main()
