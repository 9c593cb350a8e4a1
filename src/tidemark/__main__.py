"""`python -m tidemark`: the command line."""

import sys

from tidemark.cli.main import main

sys.exit(main())
