"""Take the results of `land reproduce` into the documentation.

    land reproduce all --data FOLDER -o RESULTS
    python docs/collect_reproduction.py RESULTS

Verdicts and figures are copied to docs/reproduction as they are, with a table of all
claims; docs/reproduction.md is the page around them.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # for reproduction, which is not installed

from reproduction.runner import EXPERIMENTS  # noqa: E402

TARGET = HERE / "reproduction"
WORDS = {
    "holds": "holds",
    "partly": "in part",
    "fails": "does not hold",
    "not tested": "not tested",
}


def collect(results: Path) -> None:
    """Copy what there is; experiments that have not been run keep their old pages."""
    TARGET.mkdir(exist_ok=True)
    for name in EXPERIMENTS:
        for file in results.glob(f"{name}*"):
            if file.suffix in (".json", ".md", ".png"):
                shutil.copy(file, TARGET / file.name)
    (TARGET / "claims.txt").write_text(claims_table(), encoding="utf-8")


def claims_table() -> str:
    """Every claim of the paper with its answer, as a Markdown table."""
    lines = ["| experiment | the paper | | computing |", "|---|---|---|---:|"]
    for name in EXPERIMENTS:
        file = TARGET / f"{name}.json"
        if not file.exists():
            continue
        numbers = json.loads(file.read_text(encoding="utf-8"))
        minutes = numbers["pieces"]["seconds"] / 60.0
        for claim in numbers["claims"]:
            cells = (
                f"[{name}](reproduction/{name}.md)",
                f"{claim['quote']} ({claim['where']})",
                f"**{WORDS[claim['answer']]}**",
                f"{minutes:.0f} min",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python docs/collect_reproduction.py RESULTS")
    collect(Path(sys.argv[1]))
