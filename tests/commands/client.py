"""The command `shoal` for tests: a server that has imported everything becomes the command, as a fork.

This process stands for it. The fork has its arguments, folder, environment and files, and gets its signals; it ends as
the fork ends. What is run is a copy of this file, beside the socket of the server.
"""

import marshal
import os
import signal
import socket
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def main() -> None:
    server = socket.socket(socket.AF_UNIX)
    # Importing pathlib would take as long as all of this.
    server.connect(f"{__file__.rpartition('/')[0]}/server.sock")
    request = marshal.dumps((sys.argv[1:], os.getcwdb(), dict(os.environb)))  # noqa: PTH109
    socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(request)
    pid = int.from_bytes(server.recv(4, socket.MSG_WAITALL), "big")
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: os.kill(pid, number))
    code = int.from_bytes(server.recv(4, socket.MSG_WAITALL), "big", signed=True)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
