"""Serves one task after another: waits for a request, runs it, and answers with exactly one `done`."""

import faulthandler
import json
import os
import sys

from .errors import describe
from .frames import PROTOCOL, read_frame, write_frame
from .isolation import Surroundings, die_with_parent, keep_freed_memory, limit_memory
from .json_text import encode_result
from .streams import Streams
from .task import Task, value_of

NO_VALUE = object()


def main():
    settings = json.loads(read_frame())
    os.set_inheritable(PROTOCOL, False)
    faulthandler.enable()
    limit_memory(settings["memoryLimitBytes"])
    streams = Streams(os.dup(1), settings["outputBytesMax"], settings["mark"].encode("ascii"))
    surroundings = Surroundings(settings["memoryLimitBytes"], settings["scratch"])
    # A forked child that returns to this loop must not answer for its parent.
    os.register_at_fork(after_in_child=lambda: os.close(PROTOCOL))
    streams.begin()
    streams.end()
    write_frame(json.dumps({"type": "ready", "executable": sys.executable}).encode("ascii"))
    die_with_parent()
    keep_freed_memory()
    while serve_one(streams, surroundings, settings["resultBytesMax"]):
        pass
    os._exit(0)


def serve_one(streams, surroundings, result_bytes_max):
    """Waits for one task, runs it and answers. False when there is nobody to answer to."""
    frame = read_frame()
    if frame is None:
        return False
    task = Task(frame, ask_names)
    del frame
    streams.begin()
    answer = perform(task, streams, result_bytes_max)
    if os.getpid() != surroundings.pid:
        streams.flush()
        return False
    streams.flush()
    retire = b"true" if surroundings.restore() else b"false"
    # Right before the answer: the reader, which waits for both, wakes up once.
    streams.end()
    write_frame(b'{"type":"done","retire":%s,' % retire, *answer, b"}")
    return True


def perform(task, streams, result_bytes_max):
    """Runs one task. Gives the field of its answer as parts of a JSON text, and leaves nothing of the task behind."""
    sys.modules["flow_task"] = task.module
    try:
        task.load()
        value = value_of(task, NO_VALUE)
        if value is NO_VALUE:
            value = {"status": "ok", "stdout": streams.out_text()}
        return [b'"value":', *encode_result(value, result_bytes_max)]
    except BaseException as error:
        return [b'"error":', json.dumps(describe(error, task)).encode("ascii")]
    finally:
        sys.modules.pop("flow_task", None)
        # Breaks the circle of functions and their globals, so that files are closed and memory is free at once.
        task.module.__dict__.clear()


def ask_names():
    write_frame(b'{"type":"names"}')
    answer = json.loads(read_frame())
    if "error" in answer:
        raise LookupError("the names of the playbook cannot be read: " + answer["error"])
    return answer["names"]
