import { HARNESS_CODE } from "./harness-code.ts";
import { HARNESS_ERRORS } from "./harness-errors.ts";
import { HARNESS_JSON } from "./harness-json.ts";

/*
 * The program inside each Python interpreter. It is text in this module, and not a .py file, because the compiler copies
 * no other files: an installed package has what is imported, wherever it was moved.
 *
 * Frames on file descriptor 3, both ways: length (4 bytes, big-endian), then that many bytes. The first holds this
 * program, the second the settings, every further one is JSON. After `ready` the harness waits for a request, may ask
 * for `names` while it runs, and answers with exactly one `done`. Nothing else uses the descriptor, so that no output of
 * the code, or of what it starts, can be taken for an answer.
 */

/** Exit status of an interpreter that is older than {@link PYTHON_MINIMUM}. */
export const EXIT_TOO_OLD = 86;
/** Oldest version that runs the harness. */
export const PYTHON_MINIMUM = "3.8";

/**
 * What `python -c` runs: reads the harness from descriptor 3. It must be Python 2 as well, to say that it is too old. An
 * empty entry of `sys.path` is the working directory, where a file such as `json.py` would replace the real one. The
 * harness has its own copy of the built-in functions, so that code which replaces `len` breaks only itself.
 */
export const BOOTSTRAP = `
import os, sys
if sys.version_info < (3, 8):
    sys.stderr.write("Python %d.%d" % sys.version_info[:2])
    sys.stderr.flush()
    os._exit(${EXIT_TOO_OLD})
sys.path[:] = [entry for entry in sys.path if entry]
def take(count):
    data = b""
    while len(data) < count:
        part = os.read(3, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
names = {"__name__": "flow_harness", "__builtins__": dict(vars(__builtins__))}
exec(compile(take(int.from_bytes(take(4), "big")), "<flow harness>", "exec"), names)
`;

const HARNESS_MAIN = `
import faulthandler, io, resource, signal, sys, threading, time

PROTOCOL = 3
NO_VALUE = object()
PRELOADED = {"json": json, "os": os, "datetime": datetime, "time": time, "uuid": uuid, "re": re, "math": math}


def main():
    settings = json.loads(read_frame())
    os.set_inheritable(PROTOCOL, False)
    faulthandler.enable()
    limit_memory(settings["memoryLimitBytes"])
    streams = Streams(os.dup(1), settings["outputBytesMax"], settings["mark"].encode("ascii"))
    surroundings = Surroundings(settings["memoryLimitBytes"])
    # A forked child that returns to this loop must not answer for its parent.
    os.register_at_fork(after_in_child=lambda: os.close(PROTOCOL))
    streams.begin()
    streams.end()
    write_frame(json.dumps({"type": "ready", "executable": sys.executable}))
    die_with_parent()
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
    streams.end()
    retire = "true" if surroundings.restore() else "false"
    write_frame('{"type":"done","retire":%s,%s}' % (retire, answer))
    return True


def perform(task, streams, result_bytes_max):
    """Runs one task. Gives the fields of its answer as JSON text, and leaves nothing of the task behind."""
    sys.modules["flow_task"] = task.module
    try:
        task.load()
        value = value_of(task, NO_VALUE)
        if value is NO_VALUE:
            value = {"status": "ok", "stdout": streams.out_text()}
        return '"value":' + encode_result(value, result_bytes_max)
    except BaseException as error:
        return '"error":' + json.dumps(describe(error, task))
    finally:
        sys.modules.pop("flow_task", None)
        # Breaks the circle of functions and their globals, so that files are closed and memory is free at once.
        task.module.__dict__.clear()


def ask_names():
    write_frame('{"type":"names"}')
    answer = json.loads(read_frame())
    if "error" in answer:
        raise LookupError("the names of the playbook cannot be read: " + answer["error"])
    return answer["names"]


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


def write_frame(text):
    data = text.encode("ascii")
    write_all(PROTOCOL, len(data).to_bytes(4, "big") + data)


def write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


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


class Surroundings:
    """What a task may change in the interpreter and the next one must not see. Imported modules stay imported."""

    def __init__(self, memory_limit):
        self.pid = os.getpid()
        self.environ, self.directory = dict(os.environ), os.getcwd()
        self.path, self.arguments = list(sys.path), ["flow_task"]
        self.builtins = dict(builtins.__dict__)
        self.recursion_limit = sys.getrecursionlimit()
        self.memory_peak_max = memory_limit // 2
        sys.argv = list(self.arguments)

    def restore(self):
        """Puts everything back. True when the interpreter should rather be replaced."""
        try:
            if os.getcwd() != self.directory:
                os.chdir(self.directory)
        except OSError:
            return True
        if dict(os.environ) != self.environ:
            os.environ.clear()
            os.environ.update(self.environ)
        sys.path[:] = self.path
        sys.argv[:] = self.arguments
        if builtins.__dict__ != self.builtins:
            builtins.__dict__.update(self.builtins)
            for name in builtins.__dict__.keys() - self.builtins.keys():
                del builtins.__dict__[name]
        sys.setrecursionlimit(self.recursion_limit)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if "random" in sys.modules:
            sys.modules["random"].seed()
        if "logging" in sys.modules:
            root = sys.modules["logging"].getLogger()
            root.handlers[:] = []
            root.setLevel("WARNING")
        return threading.active_count() > 1 or has_children() or peak_memory() > self.memory_peak_max


def has_children():
    """True when processes that the code started still run. Their output would land in the next task's log."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
        return True
    except ChildProcessError:
        return False


def peak_memory():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def limit_memory(limit):
    """Address space: the only limit that makes an allocation fail, so that the code gets a MemoryError."""
    try:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (OSError, ValueError):
        pass


def die_with_parent():
    """Without this an endless loop would go on after its service was killed by force. Linux only; others read EOF."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except Exception:
        pass


main()
`;

/** The whole harness, sent to each new interpreter. */
export const HARNESS = HARNESS_JSON + HARNESS_ERRORS + HARNESS_CODE + HARNESS_MAIN;
