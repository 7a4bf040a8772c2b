"""Runs a program in a sandbox without a network, and passes its calls of a proxy on 127.0.0.1 on to a unix socket.

    forwarder.py PORT SOCKET PROGRAM ARGUMENT...

It listens before the program starts, ends with it, and gives its exit status; 128 + n for a signal n.
"""

import os
import signal
import socket
import sys
import threading


def copy(source, target):
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def serve(inside, path):
    outside = socket.socket(socket.AF_UNIX)
    try:
        with inside, outside:
            outside.connect(path)
            back = threading.Thread(target=copy, args=(outside, inside), daemon=True)
            back.start()
            copy(inside, outside)
            back.join()
    except OSError:
        pass


def accept_all(listener, path):
    while True:
        inside, _ = listener.accept()
        threading.Thread(target=serve, args=(inside, path), daemon=True).start()


def main():
    port, path, program = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    child = os.fork()
    if child == 0:
        listener.close()
        try:
            os.execvp(program[0], program)
        except OSError as error:
            os.write(2, ("%s: %s\n" % (program[0], error.strerror)).encode())
            os._exit(127)
    # Only the program speaks on the descriptors that the worker gave it.
    for descriptor in range(64):
        if descriptor != listener.fileno():
            try:
                os.close(descriptor)
            except OSError:
                pass
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=accept_all, args=(listener, path), daemon=True).start()
    while True:
        # As the first process of its namespace it also reaps what others leave behind.
        ended, status = os.wait()
        if ended == child:
            os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


main()
