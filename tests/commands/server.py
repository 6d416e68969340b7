"""Becomes the command `shoal` whenever it is asked to, without the second that importing takes; see client.py.

Its argument is the socket on which it listens. It ends when its standard input does.
"""

from __future__ import annotations

import gc
import marshal
import os
import runpy
import selectors
import signal
import socket
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from shoal.cli.main import COMMANDS
from tests.commands.client import SIGNALS

SHOAL = str(Path(sys.executable).with_name("shoal"))
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class CommandRequest:
    """What makes one call of the command different from another."""

    arguments: list[str]
    folder: bytes
    environ: dict[bytes, bytes]
    files: list[int]


def read_request(connection: socket.socket) -> CommandRequest:
    size, files, _, _ = socket.recv_fds(connection, 4, 3)
    arguments, folder, environ = marshal.loads(connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    return CommandRequest(arguments, folder, environ, files)


def serve(listener: socket.socket) -> CommandRequest:
    """Fork for each request until standard input ends. Returns in forks only, with nothing of the server left open."""
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    clients: dict[int, socket.socket] = {}
    with listener, woken, wake, selectors.DefaultSelector() as selector:
        for file in (sys.stdin, listener, woken):
            selector.register(file, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            if sys.stdin in ready:
                sys.exit()
            if woken in ready:
                woken.recv(_READ_BYTES)
                tell_ends(clients)
            if listener in ready:
                client, _ = listener.accept()
                request = read_request(client)
                if (pid := os.fork()) == 0:
                    signal.set_wakeup_fd(-1)
                    for inherited in (client, *clients.values()):
                        inherited.close()
                    return request
                for received in request.files:
                    os.close(received)
                clients[pid] = client
                client.sendall(pid.to_bytes(4, "big"))


def tell_ends(clients: dict[int, socket.socket]) -> None:
    """Tell the clients of forks that have ended how they did."""
    while clients:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with clients.pop(pid) as client:
            client.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


def become_command(request: CommandRequest) -> None:
    """Run the installed script, as Python does for it."""
    for target, file in enumerate(request.files):
        os.dup2(file, target)
        os.close(file)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        errors = getattr(sys, name).errors
        setattr(sys, name, open(number, mode, errors=errors, closefd=False))  # noqa: SIM115
    os.chdir(request.folder)
    os.environb.clear()
    os.environb.update(request.environ)
    for number in (signal.SIGCHLD, *SIGNALS):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [SHOAL, *request.arguments]
    runpy.run_path(SHOAL, run_name="__main__")


if __name__ == "__main__":
    for module, _ in COMMANDS.values():
        import_module(module)
    # What is alive now is never garbage, and a fork need not copy it to see that.
    gc.collect()
    gc.freeze()
    become_command(serve(socket.socket(fileno=int(sys.argv[1]))))
