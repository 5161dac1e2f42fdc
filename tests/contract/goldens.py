"""Golden files: what rendering gave when somebody last looked at it.

`UPDATE_GOLDENS=1 pytest tests/contract` writes them anew; look at the difference before committing it. A test that
wrote fails where CI is true: there nobody looks.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "goldens"


def assert_golden(path: str, text: str) -> None:
    """`text` is what the golden file of that path (below tests/contract/goldens) holds."""
    file = FOLDER / path
    if os.environ.get("UPDATE_GOLDENS") == "1":
        assert os.environ.get("CI") != "true", "golden files are not updated in CI"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.is_file(), f"{file} is missing: run with UPDATE_GOLDENS=1 and look at what it writes"
    assert text == file.read_text(encoding="utf-8")


def golden_files(folder: str) -> set[str]:
    """Paths, below tests/contract/goldens, of all golden files in a folder of it."""
    return {str(file.relative_to(FOLDER)) for file in (FOLDER / folder).rglob("*") if file.is_file()}
