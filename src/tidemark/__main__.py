"""`python -m tidemark`: the command line."""

import sys

try:
    from tidemark.cli.main import main

    code = main()
except KeyboardInterrupt:  # while it is imported, or a second one
    print("tidemark: interrupted", file=sys.stderr)
    code = 130
sys.exit(code)
