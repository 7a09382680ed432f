"""Every page of the documentation runs as a test: in a folder of its own, with the example files in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent / "examples" / "data"


@pytest.fixture(autouse=True)
def _page_in_its_own_folder(request: pytest.FixtureRequest) -> None:
    if request.node.path.suffix != ".md":
        return
    folder = request.getfixturevalue("tmp_path")
    shutil.copytree(EXAMPLES, folder / "examples" / "data")
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    request.getfixturevalue("monkeypatch").chdir(folder)
