"""Run the paper's experiments: `python -m reproduction NAME`, or `--list`."""

import sys

from land.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", *sys.argv[1:]]))
