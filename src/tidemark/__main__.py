"""`python -m tidemark`: the command line."""

import sys

from tidemark.cli import main

sys.exit(main())
