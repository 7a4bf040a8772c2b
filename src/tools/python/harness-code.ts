/**
 * Python: from the text of a task to its value. Compiles once per text, gives the code its names, and calls `main`.
 * Part of the harness (`python-harness.ts`), with which it shares one namespace.
 */
export const HARNESS_CODE = String.raw`
import ast, builtins, collections, importlib, keyword, re, types

CACHE_ENTRIES_MAX = 256
BODY = "__flow_body__"
END = "__flow_end__"
WANTS_CONTEXT = re.compile(r"\bcontext\b")
AWAITS = (ast.Await, ast.AsyncFor, ast.AsyncWith)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

compiled_programs = collections.OrderedDict()


class CompileFailed(Exception):
    """The code is not Python. The error itself is the cause."""


class Program:
    """Code that is ready to run: 'code' defines BODY when 'returns' is set, and a call of BODY then does the rest."""

    __slots__ = ("code", "returns", "wants_context")

    def __init__(self, code, returns, wants_context):
        self.code = code
        self.returns = returns
        self.wants_context = wants_context


def program_of(task):
    """The compiled code, from the cache where a loop runs the same text again."""
    key = (task.code, task.label, task.first_line)
    program = compiled_programs.get(key)
    if program is None:
        try:
            program = compile_program(*key)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise CompileFailed() from error
        compiled_programs[key] = program
        if len(compiled_programs) > CACHE_ENTRIES_MAX:
            compiled_programs.popitem(last=False)
    else:
        compiled_programs.move_to_end(key)
    return program


def compile_program(code, label, first_line):
    """Line numbers become those of the document before compiling, so that every traceback has them right."""
    try:
        tree = ast.parse(code, label)
    except SyntaxError as error:
        if error.lineno is not None:
            error.lineno += first_line - 1
        raise
    if first_line > 1:
        ast.increment_lineno(tree, first_line - 1)
    returns = "return" in code and any(holds(statement, ast.Return) for statement in tree.body)
    if returns:
        tree = with_body_function(tree, label)
    return Program(compile_tree(tree, label), returns, WANTS_CONTEXT.search(code) is not None)


def compile_tree(tree, label):
    return compile(tree, label, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def holds(node, kinds):
    """True when the node has one of the kinds inside it, not counting what belongs to an inner function or class."""
    if isinstance(node, kinds):
        return True
    if isinstance(node, SCOPES):
        return False
    return any(holds(child, kinds) for child in ast.iter_child_nodes(node))


def with_body_function(tree, label):
    """The same module, with everything from the first top-level return on moved into a function.

    Every name that the moved part binds is declared global there, so that it means what it means in a module. The
    compiler itself tells which names these are: it sees each way of binding one, in any version of the language.
    """
    awaits = any(holds(statement, AWAITS) for statement in tree.body)
    start = moved_from(tree.body, awaits)
    template = ("async " if awaits else "") + "def %s():\n    return %s" % (BODY, END)
    function = ast.parse(template).body[0]
    function.body[:0] = [WithoutAnnotations().visit(statement) for statement in tree.body[start:]]
    tree.body[start:] = [function]
    ast.fix_missing_locations(tree)
    inner = next(
        constant
        for constant in compile_tree(tree, label).co_consts
        if isinstance(constant, types.CodeType) and constant.co_name == BODY
    )
    bound = sorted(name for name in {*inner.co_varnames, *inner.co_cellvars} if name.isidentifier())
    if bound:
        function.body.insert(0, ast.Global(names=bound))
        ast.fix_missing_locations(tree)
    return tree


def moved_from(statements, awaits):
    """Index of the first statement that moves. With an await all move, because one event loop must run them all."""
    for index, statement in enumerate(statements):
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if holds(statement, ast.Return) or (awaits and not future and not text):
            return index
    return len(statements)


class WithoutAnnotations(ast.NodeTransformer):
    """Turns 'x: int = 1' into 'x = 1', because a name that is declared global cannot be annotated."""

    def visit_AnnAssign(self, node):
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value, type_comment=None), node)

    def leave_alone(self, node):
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = leave_alone


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
`;
