"""Compiles the text of a task, once per text. A `return` at top level is made legal."""

import ast
import collections
import re
import types

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
