"""Write tutorial.ipynb from tutorial.md: code blocks become cells, text stays text."""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
_FENCE = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BEFORE = {"python": "", "sh": "%%sh\n"}


def notebook(text: str) -> str:
    """The notebook of a page, as JSON."""
    pieces = _FENCE.split(text)  # text, language, code, text, ...
    cells: list[dict] = []
    for k in range(0, len(pieces), 3):
        cells.append({"cell_type": "markdown", "source": pieces[k].strip()})
        if k + 1 < len(pieces):
            source = _BEFORE[pieces[k + 1]] + pieces[k + 2].strip()
            code = {"execution_count": None, "outputs": [], "source": source}
            cells.append({"cell_type": "code", **code})
    cells = [each for each in cells if each["source"]]
    for number, cell in enumerate(cells):
        cell |= {"id": f"cell-{number}", "metadata": {}}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    form = {"nbformat": 4, "nbformat_minor": 5}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, **form}
    return json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    text = notebook((HERE / "tutorial.md").read_text("utf-8"))
    (HERE / "tutorial.ipynb").write_text(text, "utf-8")
