"""``python -m land.cli`` is the command `land`."""

import sys

from land.cli import main

sys.exit(main())
