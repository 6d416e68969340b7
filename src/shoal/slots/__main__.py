"""Starts the broker process: python -m shoal.slots SOCKET MEMORY IDLE_SECONDS."""

import sys

from shoal.slots.server import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
