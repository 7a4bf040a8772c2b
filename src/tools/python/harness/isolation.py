"""Keeps tasks apart: what one changed is put back before the next, and memory is limited."""

import builtins
import os
import resource
import signal
import stat
import sys
import threading

# Tasks after which it is first noted, and then looked at, how large the process is: by then its modules are imported.
FIRST_TASKS = 100
LOOK_TASKS = 1000
# What the process may grow by between two looks.
GROWTH_BYTES_MAX = 16 * 1024 * 1024
GROWTH_FILES_MAX = 64


class Surroundings:
    """What a task may change in the interpreter and the next one must not see. Imported modules stay imported."""

    def __init__(self, memory_limit, scratch):
        self.pid = os.getpid()
        self.folders = [] if scratch is None else [scratch, "/dev/shm"]
        self.processes = processes() if scratch is not None else None
        self.environ, self.directory = dict(os.environ), os.getcwd()
        self.path, self.arguments = list(sys.path), ["flow_task"]
        self.builtins = dict(builtins.__dict__)
        self.recursion_limit = sys.getrecursionlimit()
        self.memory_peak_max = memory_limit // 2
        self.cpu_max = cpu_limit() / 100
        self.tasks, self.size = 0, (0, 0)
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
        if not all([is_emptied(folder) for folder in self.folders]):
            return True
        if self.processes is not None and processes() != self.processes:
            return True
        if cpu_used() > self.cpu_max:
            return True
        if threading.active_count() > 1 or has_children() or has_peak_above(self.memory_peak_max):
            return True
        return self.grows()

    def grows(self):
        """True when the process is clearly larger than a thousand tasks ago: it leaks memory or open files."""
        self.tasks += 1
        if self.tasks == FIRST_TASKS:
            self.size = size()
        if self.tasks % LOOK_TASKS != 0:
            return False
        (memory_before, files_before), self.size = self.size, size()
        memory, files = self.size
        return memory - memory_before > GROWTH_BYTES_MAX or files - files_before > GROWTH_FILES_MAX


def is_emptied(folder):
    """Removes what a task has left in a folder of the sandbox. False when something stays."""
    try:
        remove_entries(folder, os.lstat(folder).st_dev)
        return True
    except FileNotFoundError:
        return True
    except (OSError, RecursionError):
        return False


def remove_entries(folder, device):
    """Removes all that a folder holds, but nothing of other file systems: a shared folder may be mounted there."""
    is_empty = True
    for entry in os.listdir(folder):
        path = os.path.join(folder, entry)
        status = os.lstat(path)
        if status.st_dev != device:
            is_empty = False
        elif not stat.S_ISDIR(status.st_mode):
            os.remove(path)
        elif remove_entries(path, device):
            os.rmdir(path)
        else:
            is_empty = False
    return is_empty


def processes():
    """The processes of the sandbox: those that left our group, and are no children of ours any more, too."""
    try:
        return {entry for entry in os.listdir("/proc") if entry.isdigit()}
    except OSError:
        return set()


def has_children():
    """True when processes that the code started still run. Their output would land in the next task's log."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
        return True
    except ChildProcessError:
        return False


def size():
    """Most memory that the process has had, in bytes, and how many files it has open."""
    try:
        files = len(os.listdir("/dev/fd"))
    except OSError:
        files = 0
    return peak_memory(), files


def has_peak_above(limit):
    """Most looks end with the cheaper number, which is never too small."""
    return peak_of_line() > limit and peak_memory() > limit


def peak_memory():
    """Most memory that this program has had, in bytes."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return peak_of_line()


def peak_of_line():
    """The same, but on Linux no less than what the worker had then: a process begins with its parent's peak."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def cpu_limit():
    """Seconds of CPU time after which the system ends this process; infinite without a limit."""
    soft = resource.getrlimit(resource.RLIMIT_CPU)[0]
    return float("inf") if soft == resource.RLIM_INFINITY else soft


def cpu_used():
    """Seconds. An interpreter that used a hundredth of its limit is replaced: the limit is that of a task."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


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


def keep_freed_memory():
    """Memory of a large result is used again: giving it back to the system took a fifth of a task with 160 KB."""
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        # glibc alone has both: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD.
        libc.mallopt(-1, 8 * 1024 * 1024)
        libc.mallopt(-3, 4 * 1024 * 1024)
    except Exception:
        pass
