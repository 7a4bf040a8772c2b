"""From a task to its value: gives the code its names, runs it, and calls `main`."""

import builtins
import datetime
import importlib
import json
import keyword
import math
import os
import re
import time
import types
import uuid

from .program import BODY, END, program_of

PRELOADED = {"json": json, "os": os, "datetime": datetime, "time": time, "uuid": uuid, "re": re, "math": math}


class Task:
    """One request, and what running it needs to know."""

    def __init__(self, frame, ask_names):
        self.code, self.label, self.first_line = "", "", 1
        self.module = types.ModuleType("flow_task")
        # What describes an error that has no line of its own: what was being done, and (line, function).
        self.doing, self.place = "reading the inputs", (None, None)
        self._frame, self._ask_names, self._names = frame, ask_names, None

    def load(self):
        """Apart from the constructor, because inputs may be too large for the memory limit."""
        request, self._frame = json.loads(self._frame), None
        self.code, self.label, self.first_line = request["code"], request["label"], request["firstLine"]
        self.input, self.libs, self.execution_id = request["input"], request["libs"], request["executionId"]
        self.doing = None

    def names(self):
        """Every name of the playbook. Large, and most code does not want it: fetched when first asked for."""
        if self._names is None:
            self._names = self._ask_names()
        return self._names


def value_of(task, no_value):
    """Runs the code. The value is its global 'result', else what it returns at top level, else what main() returns."""
    program = program_of(task)
    scope = task.module.__dict__
    add_names(task, program, scope)
    given = scope.get("result", no_value)
    try:
        settled(eval(program.code, scope))
        returned = settled(scope.pop(BODY)()) if program.returns else no_value
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
        result = scope.get("result", no_value)
        return no_value if result is given else result
    if returned is END_OF_BODY:
        returned = no_value
    result = scope.get("result", no_value)
    if result is not given:
        return result
    if returned is not no_value:
        return returned
    if callable(scope.get("main")):
        return call_main(scope["main"], task, no_value)
    return no_value


END_OF_BODY = object()


def add_names(task, program, scope):
    """Module globals: what is always there, then libs, then the inputs, which win over both."""
    scope["__builtins__"] = builtins
    scope.update(PRELOADED)
    scope[END] = END_OF_BODY
    scope.update(execution_id=task.execution_id, input_data=task.input, args=task.input)
    if program.wants_context and "context" not in task.input:
        scope["context"] = task.names()
    for alias, target in task.libs.items():
        task.doing = "importing %s of libs" % alias
        scope[alias] = imported(target)
    task.doing = None
    for name, value in task.input.items():
        if name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__"):
            scope[name] = value


def imported(target):
    if isinstance(target, str):
        return importlib.import_module(target)
    value = importlib.import_module(target["from"])
    for name in target["import"].split("."):
        value = getattr(value, name)
    return value


def call_main(main, task, no_value):
    if hasattr(main, "__code__") and main.__code__.co_filename == task.label:
        task.place = (main.__code__.co_firstlineno, "main")
    positional, named = bind_main(main, task)
    task.place = (None, None)
    try:
        return settled(main(*positional, **named))
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
        return no_value


def bind_main(main, task):
    """Arguments by name: from the inputs, then from the names of the playbook, then the default. ** takes the rest."""
    import inspect  # with asyncio below the slowest imports, and most code needs neither

    positional, named, missing, takes_rest = [], {}, [], False
    parameters = inspect.signature(main).parameters
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_rest = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            value = argument(name, task, parameter.default)
            if value is parameter.empty:
                missing.append(name)
            elif parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(value)
            else:
                named[name] = value
    if missing:
        raise TypeError(
            "main() needs %s, and neither an input nor another name of the playbook is called so; "
            "add it to the task's input" % ", ".join(repr(name) for name in missing)
        )
    if takes_rest:
        named.update((key, value) for key, value in task.input.items() if key not in parameters)
    return positional, named


def argument(name, task, default):
    if name in task.input:
        return task.input[name]
    if name in ("input_data", "args"):
        return task.input
    if name == "execution_id":
        return task.execution_id
    if name == "context":
        return task.names()
    return task.names().get(name, default)


def settled(value):
    """The value itself, or what it comes to when it must be awaited."""
    if not hasattr(type(value), "__await__"):
        return value
    import asyncio

    async def wait():
        return await value

    return asyncio.run(wait())
