"""Keys that run code while a call is read: the arguments, the request or the toolkit change under it.

Each case runs in a process of its own, where freed memory is overwritten. A call ends with a response or an ordinary
exception, and a tool is only ever passed what was sent to its parameter.
"""

import pytest

from support.hostile import survives

PRELUDE = """
import functools, itertools, logging, re
logging.disable()
from toolcrib import Policy

wrong, letters = [], "abcde"

def seen(arguments):
    # Every value says in its first letter which parameter it was sent to.
    for name, value in arguments.items():
        if type(value) is not str or not re.fullmatch(f"{name}:(x{{1000}}[0-9]+|new|default|preset)", value):
            wrong.append((name, repr(value)[:60]))

def parameters(count):
    return ", ".join(f"{letter}: str = '{letter}:default'" for letter in letters[:count])

def named(count):
    return "dict(" + ", ".join(f"{letter}={letter}" for letter in letters[:count]) + ")"

SOURCE = {
    "coroutine": "async def tool({parameters}): seen({named}); return 'ran'",
    "function": "def tool({parameters}): seen({named}); return 'ran'",
    "generator": "def tool({parameters}):\\n    seen({named})\\n    yield 'ran'",
    "async generator": "async def tool({parameters}):\\n    seen({named})\\n    yield 'ran'",
    "method": "class Owner:\\n    def tool(self, {parameters}): seen({named}); return 'ran'\\ntool = Owner().tool",
    "partial": "def inner(z, {parameters}): seen(dict(z=z, **{named})); return 'ran'\\n"
               "tool = functools.partial(inner, 'z:preset')",
    "keywords": "async def tool(**rest): seen({{str(name): value for name, value in rest.items()}}); return 'ran'",
    "preset": "async def tool({parameters}, z: str = 'z:default'): seen(dict(z=z, **{named})); return 'ran'",
}

def make(kind, count):
    scope = dict(functools=functools, seen=seen)
    exec(SOURCE[kind].format(parameters=parameters(count), named=named(count)), scope)
    return scope["tool"]

def toolkit(kind, count, **options):
    kit = Toolkit(**options)
    kit.create_tool_group("group", "A group.", active=True)
    presets = {"z": "z:preset"} if kind == "preset" else None
    tool = make(kind, count)
    kit.register_tool_function(tool, func_name="tool", group_name="group", preset_kwargs=presets)
    kit.register_tool_function(make("coroutine", count), func_name="other")
    return kit

numbers = itertools.count()

def value(letter): return f"{letter}:" + "x" * 1000 + str(next(numbers))

def waste():
    # Takes the memory that was freed a moment ago.
    world.waste = ["~" * 1000 + str(number) for number in range(60)]

class World: pass
def quiet_loop():
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    return loop

world = World()
world.loop = quiet_loop()

class Armed:
    # Runs the effect of the moment, once for every time that it was armed.
    def run(self):
        if world.armed and not world.busy:
            world.armed -= 1; world.busy = True
            try: world.effect()
            finally: world.busy = False; waste()

class Text(str, Armed):
    def __hash__(self): world.hashes and self.run(); return str.__hash__(self)
    def __eq__(self, other): self.run(); return str.__eq__(self, other)
    def __ne__(self, other): return not self == other

class Thing(Armed):
    def __init__(self, text): self.text = text
    def __hash__(self): world.hashes and self.run(); return hash(self.text)
    def __eq__(self, other): self.run(); return other == self.text
    def __str__(self): return self.text

def delete():
    for key in [*world.arguments][:-1]: world.arguments.pop(key, None)
def delete_last(): world.arguments.pop([*world.arguments][-1], None)
def replace():
    for key in [*world.arguments]: world.arguments[key] = f"{key}:new"
def replace_plain():
    for letter in letters: dict.__setitem__(world.arguments, letter, f"{letter}:new")
def clear(): world.arguments.clear()
def refill(): world.arguments.clear(); world.arguments.update({letter: f"{letter}:new" for letter in letters})
def rename(): world.request["name"] = "other"
def other_input(): world.request["input"] = {"a": "a:new"}
def no_request(): world.request.clear()
def remove_tool(): world.kit.remove_tool_function("tool")
def replace_tool():
    options = dict(func_name="tool", group_name="group", namesake_strategy="override")
    world.kit.register_tool_function(make("coroutine", 2), **options)
def close_group(): world.kit.update_tool_groups(["group"], False)
def remove_group(): world.kit.remove_tool_groups("group")
def nested():
    stream = world.kit.call_tool_function({"name": "other", "input": dict.fromkeys("", "")})
    try: stream.__anext__().send(None)
    except StopIteration: pass
    stream.close()
def nested_same():
    stream = world.kit.call_tool_function({"name": "tool", "input": {"b": "b:new"}})
    try: stream.__anext__().send(None)
    except StopIteration: pass
    except RuntimeError: pass
def collect(): gc.collect()
def interrupt(): raise KeyboardInterrupt
def fail(): raise ZeroDivisionError
def exit(): raise SystemExit

EFFECTS = [delete, delete_last, replace, replace_plain, clear, refill, rename, other_input, no_request, remove_tool,
           replace_tool, close_group, remove_group, nested, nested_same, collect, interrupt, fail, exit]

async def read(stream):
    return [response async for response in stream]

def streamed(kit): return read(kit.call_tool_function(world.request))

async def passing(kwargs, next_handler):
    async for chunk in next_handler(**kwargs): yield chunk

async def changing(kwargs, next_handler):
    kwargs["tool_call"]["input"] = world.arguments
    async for chunk in next_handler(**kwargs): yield chunk

async def approve(request): return "once"

ask = {"tool": "*", "decision": "ask"}
WAYS = {
    "stream": ({}, streamed),
    "call": ({}, lambda kit: kit.call("tool", **world.arguments)),
    "view": ({}, lambda kit: read(kit.view(groups=["group", "basic"]).call_tool_function(world.request))),
    "view call": ({}, lambda kit: kit.view(groups=["group", "basic"]).call("tool", **world.arguments)),
    "tool": ({}, lambda kit: read(kit.tools["tool"].call(arguments=world.arguments))),
    "middleware": ({}, lambda kit: kit.register_middleware(passing) or streamed(kit)),
    "changing middleware": ({}, lambda kit: kit.register_middleware(changing) or streamed(kit)),
    "policy": ({"policy": Policy([ask]), "approver": approve}, streamed),
    "sync approver": ({"policy": Policy([ask]), "approver": lambda _: True}, streamed),
    "pass": ({"arguments": "pass"}, streamed),
    "check": ({"arguments": "check"}, streamed),
    "raise": ({"errors": "raise"}, streamed),
    "agentscope": ({"arguments": "pass", "errors": "compat", "run_in": "inline"}, streamed),
}

def attempt(kit, way):
    async def main(): return await way(kit)
    try: responses = world.loop.run_until_complete(main())
    except (KeyboardInterrupt, SystemExit):
        assert world.effect in (interrupt, exit), world.effect
        world.loop = quiet_loop()
        return
    except Exception as error:
        assert "internal" not in str(error), error
        return
    for response in responses if isinstance(responses, list) else [responses]:
        assert isinstance(response, ToolResponse), response
        assert "internal" not in response.text and "~~" not in response.text, response

def hostile_arguments(count, key_class, at):
    sent = enumerate(letters[:count])
    return {key_class(letter) if place in at else letter: value(letter) for place, letter in sent}

def arguments_case(kind, count, way_name, run_in):
    options, way = WAYS[way_name]
    for key_class, effect, at, (hashes, armed) in itertools.product(
        (Text, Thing), EFFECTS, ({0}, {count - 1}, set(range(count))), ((False, 1), (False, 9), (True, 3))
    ):
        if key_class is Thing and "call" in way_name: continue
        world.armed, world.busy, world.hashes, world.effect = 0, False, hashes, effect
        world.kit = toolkit(kind, count, **{"run_in": run_in, **options})
        world.arguments = hostile_arguments(count, key_class, at)
        world.request = {"type": "tool_use", "id": "1", "name": "".join(["to", "ol"]), "input": world.arguments}
        world.armed = armed
        attempt(world.kit, way)
        world.armed = 0
        assert not wrong, (wrong, kind, way_name, key_class, effect, at, hashes)

def request_case(kind, way_name, run_in):
    options, way = WAYS[way_name]
    places = (["type"], ["id"], ["name"], ["input"], ["name", "input"], ["type", "id", "name", "input"])
    for key_class, effect, at, hashes in itertools.product((Text, Thing), EFFECTS, places, (False, True)):
        world.armed, world.busy, world.hashes, world.effect = 0, False, hashes, effect
        world.kit = toolkit(kind, 2, **{"run_in": run_in, **options})
        world.arguments = {letter: value(letter) for letter in "ab"}
        entries = {"type": "tool_use", "id": "1", "name": "".join(["to", "ol"]), "input": world.arguments}
        world.request = {key_class(key) if key in at else key: entry for key, entry in entries.items()}
        del entries
        world.armed = 1
        attempt(world.kit, way)
        world.armed = 0
        assert not wrong, (wrong, kind, way_name, key_class, effect, at, hashes)
"""

KINDS = ["coroutine", "function", "generator", "async generator", "method", "partial", "keywords", "preset"]
WAYS = ["stream", "call", "view", "view call", "tool", "middleware", "changing middleware", "policy", "sync approver"]
WAYS += ["pass", "check", "raise", "agentscope"]


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_arguments_may_change_while_they_are_passed(kind: str, count: int) -> None:
    survives(f"arguments_case({kind!r}, {count}, 'stream', 'inline')", PRELUDE, PYTHONMALLOC="debug")


@pytest.mark.parametrize("way", WAYS)
def test_arguments_may_change_however_a_tool_is_called(way: str) -> None:
    survives(f"arguments_case('coroutine', 3, {way!r}, 'inline')", PRELUDE, PYTHONMALLOC="debug")


@pytest.mark.parametrize("kind", ["function", "generator"])
def test_arguments_may_change_on_their_way_to_a_thread(kind: str) -> None:
    survives(f"arguments_case({kind!r}, 2, 'stream', 'thread')", PRELUDE, PYTHONMALLOC="debug")


@pytest.mark.parametrize("way", [way for way in WAYS if "call" not in way and way != "tool"])
def test_a_request_may_change_while_it_is_read(way: str) -> None:
    survives(f"request_case('coroutine', {way!r}, 'inline')", PRELUDE, PYTHONMALLOC="debug")


def test_a_request_for_a_thread_may_change_while_it_is_read() -> None:
    survives("request_case('function', 'stream', 'thread')", PRELUDE, PYTHONMALLOC="debug")


def test_the_name_that_is_looked_up_is_the_one_that_was_sent() -> None:
    program = """
        world.hashes = False
        for key_class in (Text, Thing):
            for key in ("input", "id", "type"):
                for _ in range(20):
                    world.armed, world.busy, world.kit, world.arguments = 0, False, Toolkit(), {}
                    world.effect = lambda: world.request.update(name="other")
                    world.request = {"name": "".join(["absent"] * 10), key_class(key): {}}
                    world.armed = 1
                    [response] = run(read(world.kit.call_tool_function(world.request)))
                    world.armed = 0
                    assert response.code in ("unknown_tool", "bad_call"), response
                    said = ("absent" * 10 in response.text, "other" in response.text, response.code == "bad_call")
                    assert any(said), response
    """

    survives(program, PRELUDE, PYTHONMALLOC="debug")


def test_a_stream_is_not_finalised_before_it_was_collected() -> None:
    program = """
        class Box: pass
        def stream(): return kit.call_tool_function(call("echo", {"value": 1}))
        for held in (1, 3, 40):
            boxes = [Box() for _ in range(held)]
            for box in boxes: box.stream, box.me = stream(), box
            del boxes, box
            gc.collect()
            fresh = [stream() for _ in range(2 * held)]
            assert not any(gc.is_finalized(each) for each in fresh), [gc.is_finalized(each) for each in fresh]
            del fresh
    """

    survives(program, PYTHONMALLOC="debug")


def test_a_recycled_stream_still_finalises_its_tool() -> None:
    program = """
        import warnings
        warnings.simplefilter("ignore")
        class Box: pass
        ended = []
        @kit.tool
        async def endless():
            try:
                while True: yield "more"
            finally: ended.append(1)
        async def begin():
            box = Box()
            box.me, box.stream = box, kit.call_tool_function(call("endless", {}))
            await anext(box.stream)
        async def main():
            for _ in range(20):
                await begin()
                gc.collect()
                await asyncio.sleep(0)
            for _ in range(5): await asyncio.sleep(0)
            assert len(ended) == 20, ended
        run(main())
    """

    survives(program, PYTHONMALLOC="debug")
