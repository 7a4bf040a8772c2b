"""What went wrong in a task, in the author's terms."""

import sys

from .json_text import ResultNotJson, ResultTooLarge
from .program import BODY, CompileFailed

MESSAGE_CHARS_MAX = 4096
FRAMES_SHOWN_MAX = 20
CAUSES_MAX = 5


def describe(error, task):
    """An exception as a report: its type and message, the author's line, and a traceback of the author's code only."""
    if isinstance(error, MemoryError):
        give_back_memory(error, task)
    if isinstance(error, CompileFailed):
        return describe_compile(error.__cause__, task)
    frames = frames_of(error, task)
    line, function = frames[-1] if frames else task.place
    name = type(error).__name__
    code, message = name, message_of(error)
    if isinstance(error, SystemExit):
        code, message = exit_of(error)
    elif isinstance(error, MemoryError):
        code = "MEMORY_LIMIT"
        message = message or "the code needs more memory than a python task may use"
    elif isinstance(error, ResultNotJson):
        code = "RESULT_NOT_JSON"
    elif isinstance(error, ResultTooLarge):
        code = "RESULT_TOO_LARGE"
    elif isinstance(error, ModuleNotFoundError) and error.name:
        message += "; install it with: %s -m pip install <package>" % sys.executable
    if task.doing is not None:
        message += " (while %s)" % task.doing
    return {
        "exception": name,
        "code": code,
        "message": message,
        "traceback": traceback_text(error, task),
        "line": line,
        "function": function,
        "retryable": getattr(error, "retryable", False) is True,
    }


def describe_compile(error, task):
    name = type(error).__name__
    line = getattr(error, "lineno", None)
    message = shortened(error.msg) if isinstance(error, SyntaxError) and error.msg else message_of(error)
    lines = []
    if line is not None:
        source = source_line(task, line)
        lines.append('  File "%s", line %d' % (task.label, line))
        lines.append("    " + source.strip())
        if error.offset:
            indent = len(source) - len(source.lstrip())
            lines.append(" " * (4 + max(0, error.offset - 1 - indent)) + "^")
    lines.append(headline(name, message))
    return {
        "exception": name,
        "code": name,
        "message": message,
        "traceback": "\n".join(lines),
        "line": line,
        "function": None,
        "retryable": False,
    }


def give_back_memory(error, task):
    """Drops what the code still holds: otherwise there may be no memory left to describe the error with."""
    task.module.__dict__.clear()
    trace = error.__traceback__
    while trace is not None:
        try:
            trace.tb_frame.clear()
        except RuntimeError:
            pass  # a frame of the harness, which is still running
        trace = trace.tb_next


def headline(name, message):
    return "%s: %s" % (name, message) if message else name


def message_of(error):
    try:
        return shortened(str(error))
    except Exception:
        return "(its message cannot be printed)"


def shortened(text):
    return text if len(text) <= MESSAGE_CHARS_MAX else text[:MESSAGE_CHARS_MAX] + "…"


def exit_of(error):
    """sys.exit takes a number, or anything else that is then printed and means 1."""
    status = error.code if isinstance(error.code, int) else 1
    text = "" if isinstance(error.code, int) else ": " + shortened(str(error.code))
    return "EXIT_%d" % status, "the code ended with exit status %d%s" % (status, text)


def frames_of(error, task):
    """(line, function) of each frame of the author's own code, outermost first; frames of libraries are left out."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == task.label:
            frames.append((trace.tb_lineno, "<module>" if code.co_name == BODY else code.co_name))
        trace = trace.tb_next
    return frames


def traceback_text(error, task):
    """As Python prints it, causes first."""
    blocks = []
    while error is not None and len(blocks) < CAUSES_MAX:
        last = headline(type(error).__name__, message_of(error))
        lines = frame_lines(frames_of(error, task), task)
        blocks.append("\n".join(["Traceback (most recent call last):", *lines, last] if lines else [last]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n\nThen:\n\n".join(reversed(blocks))


def frame_lines(frames, task):
    lines = []
    for index, (line, function) in enumerate(frames):
        if FRAMES_SHOWN_MAX // 2 <= index < len(frames) - FRAMES_SHOWN_MAX // 2:
            if index == FRAMES_SHOWN_MAX // 2:
                lines.append("  … %d more calls …" % (len(frames) - FRAMES_SHOWN_MAX))
            continue
        lines.append('  File "%s", line %d, in %s' % (task.label, line, function))
        lines.append("    " + source_line(task, line).strip())
    return lines


def source_line(task, line):
    lines = task.code.splitlines()
    index = line - task.first_line
    return lines[index] if 0 <= index < len(lines) else ""
