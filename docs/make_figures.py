"""Run the scripts of docs/gallery and write a page with picture and output for each.

Sphinx calls `make_pages` before it reads the sources. A script runs again only when it,
or the library, has changed: results are kept in docs/_build/gallery. Scripts on real
data need the files, see docs/datasets.md; without them the stored results of
docs/images/gallery are shown, and the page says so.

    python docs/make_figures.py           # run what is new
    python docs/make_figures.py --store   # and store the results in docs/images/gallery
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = sorted((HERE / "gallery").glob("*.py"))
STORED = HERE / "images" / "gallery"
CACHE = HERE / "_build" / "gallery"
PAGES = HERE / "generated" / "gallery"
ROOT = HERE.parent
LIBRARY = ROOT / "src" / "land"
LOADERS = ROOT / "reproduction" / "data"
sys.path.insert(0, str(ROOT))  # for reproduction, which is not installed


def make_pages(*, store: bool = False) -> None:
    """Bring the pages of the gallery up to date; `store` the results as well."""
    PAGES.mkdir(parents=True, exist_ok=True)
    library = fingerprint_of_library()
    for script in SCRIPTS:
        folder = results(script, library)
        if store and folder != STORED:
            shutil.copytree(folder, STORED, dirs_exist_ok=True)
        shutil.copy(folder / f"{script.stem}.png", PAGES)
        text = page(script, (folder / f"{script.stem}.txt").read_text(), folder)
        target = PAGES / f"{script.stem}.md"
        if not target.exists() or target.read_text() != text:
            target.write_text(text)


def results(script: Path, library: str) -> Path:
    """The folder with picture and output of a script; runs it if there is none."""
    word = hashlib.sha256(library.encode() + script.read_bytes()).hexdigest()[:12]
    folder = CACHE / f"{script.stem}-{word}"
    if (folder / f"{script.stem}.txt").exists():
        return folder
    started = time.perf_counter()
    try:
        output, picture = execute(script)
    except MissingDataError:
        return STORED
    seconds = time.perf_counter() - started
    sys.stderr.write(f"gallery: {script.stem} took {seconds:.0f} s\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{script.stem}.png").write_bytes(picture)
    (folder / f"{script.stem}.txt").write_text(output)
    return folder


class MissingDataError(Exception):
    """The files of a real data set are not there."""


def execute(script: Path) -> tuple[str, bytes]:
    """Run a script in an empty folder; returns what it prints and its picture."""
    import matplotlib

    matplotlib.use("Agg")
    import jax
    import matplotlib.pyplot as plt

    from reproduction.data import DataUnavailableError

    if not jax.config.values.get("jax_compilation_cache_dir"):
        jax.config.update("jax_compilation_cache_dir", str(CACHE.parent / "jax"))
    printed = io.StringIO()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(printed):
                code = compile(script.read_text(), str(script), "exec")
                exec(code, {"__name__": "__main__"})
            return printed.getvalue(), Path(f"{script.stem}.png").read_bytes()
        except DataUnavailableError as error:
            raise MissingDataError(script.stem) from error
        finally:
            os.chdir(before)
            plt.close("all")


def fingerprint_of_library() -> str:
    """A word that changes with the code that the scripts use: all but the command."""
    digest = hashlib.sha256()
    for file in sorted([*LIBRARY.rglob("*.py"), *LOADERS.rglob("*.py")]):
        if LIBRARY / "cli" not in file.parents:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def page(script: Path, output: str, folder: Path) -> str:
    """A page in Markdown: the script's docstring, picture, code and output."""
    source = script.read_text()
    text = ast.get_docstring(ast.parse(source)) or script.stem
    title, _, about = text.partition("\n")
    code = source.split('"""', 2)[2].strip()
    note = (
        "```{note}\nThe data were not there when this page was built: picture and "
        "output are stored ones.\n```\n\n"
        if folder == STORED
        else ""
    )
    return (
        f"# {title.rstrip('.')}\n\n{about.strip()}\n\n"
        f"![{title}]({script.stem}.png)\n\n{note}"
        f"```python\n{code}\n```\n\nIt prints\n\n```text\n{output.strip()}\n```\n\n"
        f"The script is `docs/gallery/{script.name}`.\n"
    )


if __name__ == "__main__":
    make_pages(store="--store" in sys.argv[1:])
