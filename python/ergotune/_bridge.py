"""The session's end of a node that an executor runs: takes the worker's socket from the session and passes bytes on. It is started
by the session as a node command, imports nothing of the package, and ends with either side."""

import os
import select
import socket
import sys


def main() -> None:
    with socket.socket(socket.AF_UNIX) as session:
        session.connect(sys.argv[1])
        said, descriptors, _, _ = socket.recv_fds(session, 4096, 1)
        if said.startswith(b"ERGA"):  # for the session, as an agent would say it
            os.write(1, said)
            sys.stdin.buffer.read()
            return
        if not descriptors:
            sys.exit(said.decode() or "the session that asked for a worker is gone")
    worker = descriptors[0]
    ways = {0: worker, worker: 1}
    while True:
        for source in select.select(list(ways), [], [])[0]:
            try:
                data = os.read(source, 1 << 16)
            except ConnectionResetError:
                return
            if not data:
                return
            while data:
                data = data[os.write(ways[source], data):]


if __name__ == "__main__":
    main()
