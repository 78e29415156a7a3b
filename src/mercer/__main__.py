"""Run the command: `python -m mercer` is `mercer`."""

import sys

from mercer.command import main

if __name__ == "__main__":
    sys.exit(main())
