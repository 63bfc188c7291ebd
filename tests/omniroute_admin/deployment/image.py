"""Reads Dockerfile and compose.yaml: the tests run what stands there, not a copy of it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.shared import ROOT

TOOLS = Path(sys.executable).parent
ABSOLUTE = re.compile(r"(?<![\w./-])/(opt/venv|app|tmp|var/lib/omniroute_admin|run/secrets)(?![\w-])")


class Step(NamedTuple):
    """One instruction of the Dockerfile."""

    word: str
    text: str

    @property
    def words(self) -> list[str]:
        """Return the JSON form of a command."""
        found: list[str] = json.loads(self.text[self.text.index("[") :])
        return found


def stages() -> list[list[Step]]:
    """Return the steps of each stage, in order."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", " ")
    steps = [Step(*line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]
    found: list[list[Step]] = []
    for step in steps:
        if step.word == "FROM":
            found.append([])
        found[-1].append(step)
    return found


def last(word: str) -> Step:
    """Return the last instruction of a kind in the stage that is run."""
    return [step for step in stages()[-1] if step.word == word][-1]


def image_environment() -> dict[str, str]:
    """Return what ENV sets in the stage that is run."""
    pairs = (pair for step in stages()[-1] if step.word == "ENV" for pair in step.text.split())
    return dict(pair.split("=", 1) for pair in pairs)


def compose(**changes: str) -> dict[str, Any]:
    """Return compose.yaml as the Compose program itself resolves it."""
    done = subprocess.run(
        [TOOLS / "docker-compose", "--file", ROOT / "compose.yaml", "config", "--format", "json"],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **changes},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def moved(text: str, root: Path) -> str:
    """Return a text whose absolute paths of the image lie below a folder."""
    return ABSOLUTE.sub(lambda path: f"{root}{path.group()}", text)


def build(root: Path, interpreter: str) -> None:
    """Do what the Dockerfile's steps do, below a folder, with an interpreter in the place of the base image's."""
    for folder in ("opt", "app", "tmp", "shim", "run/secrets", "var/lib/omniroute_admin"):
        (root / folder).mkdir(parents=True)
    programs = {"python": [interpreter], "pip": [sys.executable, "-m", "pip"]}
    for name, command in programs.items():
        (root / "shim" / name).write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
        (root / "shim" / name).chmod(0o755)
    for number, steps in enumerate(stages()):
        path = f"{root}/shim:/usr/bin:/bin"
        variables = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
        if number:
            variables |= {name: moved(value, root) for name, value in image_environment().items()}
            path = f"{root}/opt/venv/bin:/usr/bin:/bin"
        for step in steps:
            _do(step, root, {**variables, "PATH": path})


def _do(step: Step, root: Path, environment: dict[str, str]) -> None:
    if step.word == "COPY" and not step.text.startswith("--from"):
        source, target = step.text.split()
        place = Path(moved(target, root)) if target.startswith("/") else root / "app" / target
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, place)
    # An account can be made in an image only; here the number does.
    if step.word == "RUN" and not step.text.startswith("useradd"):
        done = subprocess.run(
            ["/bin/sh", "-c", moved(step.text, root)],
            env=environment,
            cwd=root / "app",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{step.text}\n{done.stdout}\n{done.stderr}"
