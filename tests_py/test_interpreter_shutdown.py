"""First exceptions and first calls at awkward moments: at exit, without builtins, without modules.

The process lives, and an exception is of the right class.
"""

import textwrap

import pytest

from support.streams import python

# One way to each exception; `kit` and `roles` are fresh ones. Every class is raised for the first time in its process.
CAUSES = {
    "BasicGroupError": "kit.remove_tool_groups('basic')",
    "DuplicateGroupError": "kit.create_tool_group('a', ''); kit.create_tool_group('a', '')",
    "DuplicateRoleError": "roles.add(Role('a')); roles.add(Role('a'))",
    "DuplicateRuleError": "Policy([rule, rule])",
    "DuplicateToolError": "kit.register_tool_function(tool); kit.register_tool_function(tool)",
    "FileAccessError": "roles.load('/')",
    "IncompleteSchemaError": "kit.register_tool_function(tool, json_schema={'type': 'function', 'function': {}})",
    "InternalError": "raise Panic('boom')",
    "InvalidAnswerError": "kit.resume(pending, 3)",
    "InvalidPendingError": "kit.resume({}, True)",
    "InvalidRuleError": "Policy([{'nope': 1}])",
    "InvalidSchemaError": "kit.register_tool_function(tool, json_schema={'type': 'nope'})",
    "InvalidStateError": "kit.load_state_dict({'nope': 1})",
    "MissingFileError": "roles.load('/nowhere/roles.json')",
    "ReservedGroupRemovalError": "kit.register_group('a', '', reserved=True); kit.unregister_group('a')",
    "RoleFileError": "roles.load(broken)",
    "SkillDirectoryError": "kit.register_agent_skill('/nowhere')",
    "SkillFileError": "kit.register_agent_skill(folder)",
    "SkillTemplateError": "Toolkit(agent_skill_template='{nope}')",
    "SystemRoleError": "roles.remove('root')",
    "UnknownDialectError": "kit.schemas('nope')",
    "UnknownGroupError": "kit.unregister_group('nope')",
    "UnknownRoleError": "roles.remove('nope')",
}

PRELUDE = f"""
import atexit, os, sys, tempfile, threading
from toolcrib import Policy, Role, Roles, Toolkit, errors

def tool(): pass

asking = Toolkit()
asking.register_tool_function(tool, permission="confirm")
pending = asking.run("tool").metadata["pending"]

folder = tempfile.mkdtemp()
broken = os.path.join(folder, "roles.json")
with open(broken, "w") as file:
    file.write("{{")
# The class that pyo3 has for panics; nothing else here is written with it.
Panic = next(each for each in BaseException.__subclasses__() if each.__name__ == "PanicException")
rule = {{"id": "a", "tool": "*", "decision": "deny"}}
names = {{"Policy": Policy, "Role": Role, "Toolkit": Toolkit, "tool": tool, "folder": folder, "broken": broken,
         "Panic": Panic, "rule": rule, "pending": pending}}
causes = [(name, compile(cause, name, "exec"), getattr(errors, name)) for name, cause in {CAUSES!r}.items()]

# At the very end there is no file to print to any more.
def say(text, write=os.write):
    write(1, text.encode() + b"\\n")

def provoke(builtins=None, say=say, exec=exec, type=type, Toolkit=Toolkit, Roles=Roles, names=names, causes=causes):
    for name, cause, expected in causes:
        scope = {{**names, "kit": Toolkit(), "roles": Roles()}}
        if builtins is not None:
            scope["__builtins__"] = builtins
        try:
            exec(cause, scope)
        except BaseException as error:
            if type(error) is not expected:
                say(f"not {{name}} but {{error!r}}")
        else:
            say(f"no {{name}}")
    say("all")
"""

MOMENTS = {
    "in a running program": "provoke()",
    "at exit": "atexit.register(provoke)",
    "while objects die with the interpreter": """
        class Last:
            def __del__(self, provoke=provoke): provoke()
        class Circle: pass
        circle = Circle(); circle.me = circle; circle.last = Last()
        last = Last()
    """,
    "while modules die with the interpreter": """
        class Last:
            def __del__(self, provoke=provoke): provoke()
        sys.last = Last()
    """,
    "in a thread after the main one": """
        def late():
            threading.main_thread().join()
            provoke()
        threading.Thread(target=late).start()
    """,
    "in a frame without builtins": "provoke(builtins={})",
    "in a frame without builtins, at exit": "atexit.register(provoke, {})",
    "without modules": """
        kept = dict(sys.modules)
        sys.modules.clear()
        provoke()
        sys.modules.update(kept)
    """,
    "without the attributes of the module": """
        for name in errors.__all__: delattr(errors, name)
        provoke()
    """,
    "with other attributes in the module": """
        for name in errors.__all__: setattr(errors, name, None if name < "M" else KeyError)
        provoke()
    """,
    "without meta path and import": """
        import builtins
        kept, builtins.__import__ = builtins.__import__, None
        sys.meta_path.clear()
        provoke()
        builtins.__import__ = kept
    """,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_first_exception_is_the_right_one_at_any_moment(moment: str) -> None:
    result = python(PRELUDE + textwrap.dedent(MOMENTS[moment]))

    assert result.returncode == 0, result.stderr[-3000:]
    assert set(result.stdout.splitlines()) == {"all"}, result.stdout
    assert "panicked" not in result.stderr


# Calls of every kind, driven by hand because there may be no event loop any more.
CALLS = """
import atexit, math, os, sys, threading
from toolcrib import Policy, Toolkit, ToolCall, errors

def make(**options):
    kit = Toolkit(**options)
    async def coroutine(a: int, b: str = "b"): return [a, b]
    async def chunks(a: int):
        yield str(a)
        yield "\\ud800"
    def function(a: int): return {"a": a}
    def generator(a: int): yield a
    async def fails(): raise KeyError("no")
    for tool in (coroutine, chunks, function, generator, fails): kit.register_tool_function(tool)
    kit.register_tool_function(math.isqrt, func_name="apart", run_in="process")
    return kit

class Foreign:
    def model_dump(self): return {"name": "coroutine", "arguments": {"a": 1}}

async def passing(kwargs, next_handler):
    async for chunk in next_handler(**kwargs): yield chunk

kits = [make(run_in="inline"), make(), make(errors="raise"), make(errors="compat", arguments="pass", run_in="inline")]
kits.append(make(policy=Policy([{"tool": "*", "decision": "ask"}])))
kits.append(make(policy=Policy([{"tool": "*", "decision": "ask"}]), approver=lambda request: "once"))
kits.append(make(run_in="inline"))
kits[-1].register_middleware(passing)
names = ("coroutine", "chunks", "function", "generator", "fails", "apart", "nope")
inputs = ({"a": 1}, {"a": "x"}, '{"a": 1')
requests = [{"name": name, "input": input} for name in names for input in inputs]

def say(text, write=os.write):
    write(1, text.encode() + b"\\n")

def drive(step, range=range):
    try:
        for _ in range(20): step.send(None)
        step.close()
    except StopIteration as stop:
        return stop.value

def provoke(builtins=None, say=say, kits=kits, requests=requests, drive=drive, read=ToolCall.read, Foreign=Foreign):
    def attempt(action):
        try: return action()
        except Exception: pass
    for kit in kits:
        for request in [*requests, Foreign()]:
            view = attempt(lambda: kit.view(groups=["basic"]))
            for source in (kit, view):
                stream = attempt(lambda: source.call_tool_function(request))
                for _ in "123":
                    chunk = attempt(lambda: drive(stream.__anext__()))
                    attempt(lambda: (chunk.text.encode(), chunk.id, repr(chunk), chunk == chunk, chunk.to_mcp()))
                attempt(lambda: drive(stream.aclose()))
            attempt(lambda: read(request))
            attempt(lambda: kit.check(request))
        attempt(lambda: drive(kit.call("coroutine", a=1).__await__()))
        attempt(lambda: kit.run("coroutine", a=1))
        for method in ("get_json_schemas", "instructions", "state_dict"):
            attempt(lambda: getattr(kit, method)())
    say("all")
"""


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if "builtins" not in moment])
def test_a_first_call_ends_in_an_answer_or_an_exception_at_any_moment(moment: str) -> None:
    result = python(CALLS + textwrap.dedent(MOMENTS[moment]))

    assert result.returncode == 0, result.stderr[-3000:]
    assert set(result.stdout.splitlines()) == {"all"}, result.stdout
    assert "panicked" not in result.stderr


def test_a_thread_that_is_left_behind_does_not_kill_the_process() -> None:
    program = PRELUDE + textwrap.dedent(
        """
        import time
        def forever():
            while True: provoke(say=lambda _: None)
        for _ in range(3): threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.2)
        """
    )

    for _ in range(5):
        result = python(program)

        assert result.returncode == 0, result.stderr[-3000:]


def test_a_call_without_builtins_is_answered() -> None:
    program = """
        import asyncio, types
        from toolcrib import Toolkit, ToolCall

        kit = Toolkit(run_in="inline")

        @kit.tool
        async def double(value: int) -> int:
            return value * 2

        def body():
            kit.register_tool_function(double, func_name="again")
            kit.create_tool_group("a", "A group.")
            kit.update_tool_groups(["basic"], True)
            view = kit.view(groups=["a", "basic"])
            found = view.tools["again"]
            read = read_call({"name": "double", "arguments": {"value": 1}})
            answer = kit.run("double", value=4)
            again = view.run("again", value="5").text
            return found.name, read.name, answer.text, again, answer.id, kit.schemas("openai")

        scope = {"__builtins__": {}, "kit": kit, "read_call": ToolCall.read, "double": double}
        bare = types.FunctionType(body.__code__, scope)
        print(bare()[:4])
    """

    result = python(program)

    assert (result.returncode, result.stdout) == (0, "('again', 'double', '8', '10')\n"), result.stderr[-3000:]


def test_the_package_can_be_imported_again() -> None:
    program = """
        import sys
        import toolcrib
        first = toolcrib.Toolkit()
        for name in [name for name in sys.modules if name.startswith("toolcrib")]: del sys.modules[name]
        import toolcrib
        for kit in (first, toolcrib.Toolkit()):
            kit.register_tool_function(lambda: "ran", func_name="tool")
            print(kit.run("tool").text)
            try: kit.unregister_group("nope")
            except ValueError as error: print(type(error).__name__)
    """

    result = python(program)

    assert (result.returncode, result.stdout) == (0, "ran\nUnknownGroupError\n" * 2), result.stderr[-3000:]
