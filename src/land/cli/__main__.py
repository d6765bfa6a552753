"""``python -m land.cli`` is the command `land`."""

import sys

from land.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
