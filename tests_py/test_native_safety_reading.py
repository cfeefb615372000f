"""Containers that change while they are read, each in a process of its own: a value or an exception, never a panic."""

import pytest

from support.hostile import survives

# `attempt` lets an `Exception` pass; a `PanicException` is none. A `Changing` changes a container while it is read.
CHANGING = """
from toolcrib import ToolCall, format_tool_result
from toolcrib import _core
from toolcrib.compat.artifactflow import ToolPromptGenerator

def attempt(action):
    try: return action()
    except Exception as error:
        assert "internal" not in str(error), error
        return None

class Changing:
    def __init__(self, change): self.change = change
    def model_dump(self): self.change(); return {"a": 1}
    def isoformat(self): self.change(); return "now"
    def __str__(self): self.change(); return "text"
    __repr__ = __str__

def grow(target):
    def change():
        if isinstance(target, dict): target[f"more{len(target)}"] = 1
        else: target.append(len(target))
    return change

def shrink(target):
    def change():
        for key in [*target][1:2]: target.pop(key) if isinstance(target, dict) else target.pop()
    return change

def clear(target): return target.clear

def swap(target):
    def change():
        if isinstance(target, dict):
            for key in [*target]: target[key + "'"] = target.pop(key)
        else: target.reverse()
    return change

def containers():
    for change in (grow, shrink, clear, swap):
        for keys in (1, 3, 40):
            target = {f"k{n}": n for n in range(keys)}
            target["value"] = Changing(change(target))
            target["last"] = Changing(change(target))
            yield target
            target = {"name": "echo", "id": "1"}
            target["arguments"] = {"x": Changing(change(target)), "y": [Changing(change(target))]}
            target["more"] = 1
            yield target
            items = list(range(keys))
            items[0:0] = [Changing(change(items))] * 2
            yield items
            yield {"name": "echo", "input": {"value": items, "more": [Changing(change(items))]}}
"""

CASES = {
    "reading a call": """
        for target in containers(): attempt(lambda: ToolCall.read(target))
        for target in containers(): attempt(lambda: ToolCall.read_all(target))
        for target in containers(): attempt(lambda: ToolCall.read_all([target, {"tool_calls": target}]))
        for target in containers(): attempt(lambda: ToolCall("echo", target))
        for target in containers(): attempt(lambda: ToolCall("echo", {"value": target}))
    """,
    "making a response": """
        for target in containers(): assert attempt(lambda: _core._as_response(target)).text.encode()
        for target in containers(): attempt(lambda: _core._as_response(target).to_mcp())
        for target in containers():
            response = ToolResponse([target], {"value": target})
            for way in ("to_openai", "to_openai_responses", "to_anthropic", "to_gemini", "to_mcp"):
                attempt(lambda: getattr(response, way)("id"))
                attempt(lambda: getattr(response, way)(target))
        for target in containers():
            attempt(lambda: format_tool_result("echo", ToolResponse([target], {"value": target})))
            attempt(lambda: ToolPromptGenerator.format_tool_result("echo", {"success": True, "data": target}))
    """,
    "restoring a response": """
        class Own(ToolResponse):
            def __setattr__(self, name, value):
                if isinstance(value, Changing): value.change()
        for target in containers():
            if isinstance(target, dict): attempt(lambda: Own([]).__setstate__(target))
    """,
    "registering": """
        def tool(value: object = None): return value
        for target in containers():
            options = [{"preset_kwargs": target}, {"json_schema": target},
                       {"json_schema": {"type": "function", "function": {"name": "tool", "parameters": target}}}]
            for each in options: attempt(lambda: kit.register_tool_function(tool, **each))
            def defaulted(value: object = target): return value
            attempt(lambda: kit.register_tool_function(defaulted, namesake_strategy="override"))
    """,
    "a rule, a state, a pending call": """
        from toolcrib import Policy, Roles
        for target in containers():
            attempt(lambda: Policy([target]))
            attempt(lambda: Policy([{"tool": "*", "decision": "deny", "arguments": target}]))
            attempt(lambda: kit.load_state_dict(target))
            attempt(lambda: kit.load_state_dict({"active_groups": target}))
            attempt(lambda: kit.resume(target, True))
            attempt(lambda: kit.resume({"type": "toolcrib.pending", "arguments": target}, True))
            attempt(lambda: kit.check(target))
            attempt(lambda: kit.check({"name": "echo", "input": target}))
    """,
    "a call": """
        for target in containers():
            for name in ("echo", "count"):
                for response in run(answers(name, target)) + run(answers(name, {"value": target})):
                    assert "internal" not in getattr(response, "text", ""), response
    """,
    "a dict that another thread changes": """
        import time
        shared, stop = {"name": "f", "arguments": {}}, []
        class Slow:
            def model_dump(self): time.sleep(0); return {"a": 1}
        def change():
            n = 0
            while not stop:
                n += 1
                shared["arguments"][f"k{n % 50}"] = Slow()
                shared["arguments"].pop(f"k{(n + 25) % 50}", None)
        sys.setswitchinterval(1e-6)
        thread = threading.Thread(target=change); thread.start()
        try:
            for _ in range(300):
                attempt(lambda: ToolCall.read(shared))
                attempt(lambda: ToolCall.read_all([shared]))
                attempt(lambda: _core._as_response(shared))
        finally:
            stop.append(1); thread.join()
    """,
    "a default that rules look at": """
        from dataclasses import dataclass
        from toolcrib import Policy
        from toolcrib.policy import Rule
        @dataclass
        class Record:
            x: int = 1
            def __getattribute__(self, name):
                if name == "x" and armed: armed[0]()
                return object.__getattribute__(self, name)
        armed = []
        for change in (grow, shrink, clear):
            for make in (lambda: {"a": Record(), "b": Record(), "c": 1}, lambda: [Record(), Record()]):
                for sent in (False, True):
                    target = make()
                    rules = Toolkit(run_in="inline", policy=Policy([Rule("ask", tool="*")]))
                    rules.approver = lambda request: "once"
                    def look(what: object = target, more: dict[str, Record] | list[Record] | None = None): return "seen"
                    rules.register_tool_function(look)
                    armed.append(change(target))
                    attempt(lambda: rules.run("look", **({"more": target} if sent else {})))
                    armed.clear()
    """,
    "a preset that an approval is bound to": """
        class Pickled:
            def __reduce__(self):
                if armed: armed[0]()
                return (str, ("x",))
        armed = []
        for change in (grow, shrink, clear):
            for make in (lambda: {"a": Pickled(), "b": Pickled(), "c": 1}, lambda: [Pickled(), Pickled()]):
                target = make()
                pending = Toolkit(run_in="inline")
                def pay(amount: int, account: object): return "paid"
                pending.register_tool_function(pay, permission="confirm", preset_kwargs={"account": target})
                armed.append(change(target))
                attempt(lambda: pending.run("pay", amount=1))
                armed.clear()
    """,
    "keys that change the dict when they are compared": """
        class Key(str):
            __hash__ = str.__hash__
            def __eq__(self, other):
                if armed: armed.pop().clear()
                return str.__eq__(self, other)
        armed = []
        for action in (ToolCall.read, ToolCall.read_all, _core._as_response, kit.check, lambda x: ToolCall("f", x)):
            for name in ("name", "arguments", "input", "type", "function", "id"):
                target = {Key(name): "echo", "name'": 1, Key("arguments'"): {Key("a"): [1, 2]}}
                armed.append(target)
                attempt(lambda: action(target))
                armed.clear()
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_a_container_may_change_while_it_is_read(case: str) -> None:
    survives(CASES[case], CHANGING)
