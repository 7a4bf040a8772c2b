"""Frames on file descriptor 3, both ways: length (4 bytes, big-endian), then that many bytes."""

import os

PROTOCOL = 3


def read_frame():
    """The bytes of the next frame, or None when the other side has gone."""
    head = read_exactly(4)
    return None if head is None else read_exactly(int.from_bytes(head, "big"))


def read_exactly(count):
    data = bytearray(count)
    view, done = memoryview(data), 0
    while done < count:
        got = os.readv(PROTOCOL, [view[done:]])
        if got == 0:
            return None
        done += got
    return data


def write_frame(*parts):
    """One frame of all these bytes, which are not put together first: a result may have many megabytes."""
    parts = list(parts)
    length = sum(map(len, parts))
    parts.insert(0, length.to_bytes(4, "big"))
    left = length + 4 - os.writev(PROTOCOL, parts)
    if left > 0:
        write_all(PROTOCOL, b"".join(parts)[-left:])


def write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
