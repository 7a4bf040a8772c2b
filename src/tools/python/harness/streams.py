"""Standard output and error of a task: limited, copied, and marked where one task's output ends."""

import io
import os
import sys

from .frames import write_all


class Output(io.RawIOBase):
    """Below sys.stdout or sys.stderr: writes to a descriptor up to a limit per task, and keeps a copy."""

    def __init__(self, descriptor, limit):
        self.descriptor, self.limit = descriptor, limit
        self.begin()

    def begin(self):
        self.written, self.copy = 0, []

    def writable(self):
        return True

    def fileno(self):
        return self.descriptor

    def write(self, data):
        room = self.limit - self.written
        if room > 0:
            part = bytes(data[:room])
            write_all(self.descriptor, part)
            self.written += len(part)
            self.copy.append(part)
        return len(data)


class Streams:
    """Standard output and error: both go to one pipe, so that lines keep their order."""

    def __init__(self, log, limit, mark):
        self.log, self.limit, self.mark = log, limit, mark
        self.out = self.err = None

    def begin(self):
        """Fresh counters, and the same objects as before: a logging handler of an imported module may hold them."""
        os.dup2(self.log, 1)
        os.dup2(self.log, 2)
        if self.out is None or self.out.closed or self.err.closed:
            self.out, self.err = self.open(1), self.open(2)
        self.out.buffer.raw.begin()
        self.err.buffer.raw.begin()
        sys.stdout = sys.__stdout__ = self.out
        sys.stderr = sys.__stderr__ = self.err

    def open(self, descriptor):
        buffered = io.BufferedWriter(Output(descriptor, self.limit))
        return io.TextIOWrapper(buffered, encoding="utf-8", errors="backslashreplace", line_buffering=True)

    def out_text(self):
        self.flush()
        return b"".join(self.out.buffer.raw.copy).decode("utf-8", "replace")

    def flush(self):
        for stream in (self.out, self.err):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass

    def end(self):
        """The mark tells the reader that everything before it belongs to this task."""
        self.flush()
        write_all(self.log, self.mark)
