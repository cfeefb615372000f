"""A secret that comes under a wrong name, or in a wrong shape, is shown only to the tool."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pydantic
import pytest

from toolcrib import Policy, Toolkit
from toolcrib.policy import Rule

SECRET = "hunter2"


@dataclasses.dataclass
class Login:
    password: str = ""
    user: str = ""


class LoginModel(pydantic.BaseModel):
    password: str = ""
    user: str = ""


NAMES = ["password", "Password", "pass_word", "passwrod", "pw", "auth"]


def toolkit(seen: list[str], **options: Any) -> Toolkit:
    def approve(request: Any) -> str:
        seen.append(f"approver {request.arguments}")
        return "once"

    kit = Toolkit(run_in="inline", audit=lambda record: seen.append(f"audit {record}"), approver=approve, **options)

    @kit.tool(secrets=["password", "headers.token"], permission="confirm", aliases={"auth": "password"})
    def login(user: str, password: str = "", headers: dict[str, str] = {}) -> str:
        return "ok"

    for kind in ("call_start", "chunk", "permission_request", "permission_result", "call_end"):
        kit.subscribe(kind, lambda event: seen.append(f"{event.type} {event.data}"))
    return kit


@pytest.mark.parametrize("mode", ["coerce", "check", "pass"])
@pytest.mark.parametrize("name", NAMES)
async def test_a_misspelt_secret_is_redacted_everywhere(mode: str, name: str) -> None:
    seen: list[str] = []
    kit = toolkit(seen, arguments=mode)

    response = await kit.call("login", user="ada", **{name: SECRET})

    assert SECRET not in response.text
    assert [line for line in seen if SECRET in line] == []
    assert any("ada" in line for line in seen)


@pytest.mark.parametrize("mode", ["coerce", "pass"])
@pytest.mark.parametrize("headers", [{"token": SECRET}, {"Token": SECRET}, {"tokn": SECRET}])
async def test_a_misspelt_part_of_a_parameter_is_redacted(mode: str, headers: dict[str, str]) -> None:
    seen: list[str] = []
    kit = toolkit(seen, arguments=mode)

    await kit.call("login", user="ada", headers={"host": "h", **headers})

    assert [line for line in seen if SECRET in line] == []


@pytest.mark.parametrize("mode", ["coerce", "pass"])
@pytest.mark.parametrize("name", NAMES)
def test_explaining_a_call_shows_no_secret(mode: str, name: str) -> None:
    kit = toolkit([], arguments=mode)
    policy = Policy(
        [
            Rule("deny", tool="login", args_pattern="zzz"),
            Rule("deny", tool="login", arguments={name: "x"}),
            Rule("deny", tool="login", arguments={"password": "x"}),
        ]
    )

    explained = policy.explain({"name": "login", "input": {"user": "ada", name: SECRET}}, toolkit=kit)

    assert SECRET not in str(explained)
    assert SECRET not in str(explained.tried)


def test_explaining_evaluates_the_arguments_that_would_run() -> None:
    kit = toolkit([])
    policy = Policy([Rule("deny", tool="login", arguments={"password": SECRET}, id="known")])

    explained = policy.explain({"name": "login", "input": {"user": "ada", "auth": SECRET}}, toolkit=kit)

    assert (explained.decision, explained.rule) == ("deny", "known")


@pytest.mark.parametrize("text", ['{"user": "ada", "password": 0123}', '{"user": "ada", "password": hunter2}'])
async def test_repairs_of_a_secret_do_not_show_it(text: str) -> None:
    seen: list[str] = []
    kit = toolkit(seen)

    call = {"type": "tool_use", "name": "login", "input": text}
    responses = [response async for response in kit.call_tool_function(call)]

    shown = [*seen, *(f"{response.metadata} {response.text}" for response in responses)]
    assert [line for line in shown if "0123" in line or SECRET in line] == []


async def test_the_name_of_an_unknown_tool_is_repeated_in_part() -> None:
    kit = toolkit([])

    response = await kit.call("x" * 5_000_000)

    assert response.code == "unknown_tool"
    assert len(response.text) < 300


SHAPES = [
    json.dumps({"password": SECRET, "user": "ada"}),
    [{"password": SECRET}],
    [{"key": "password", "value": SECRET}],
    [json.dumps({"password": SECRET})],
    {"json": json.dumps({"password": SECRET})},
    {"login": json.dumps({"password": SECRET})},
    {"password": [SECRET]},
    f"password={SECRET}",
    {"a": {"password": SECRET}},
    {"opts": {"password": SECRET}},
    {"opts.password": SECRET},
    {"password": "", "other": [["password", SECRET]]},
]

ANNOTATED = [
    (annotation, shape)
    for annotation in (Login, LoginModel, dict, dict[str, Any], dict[str, str], Any)
    for shape in SHAPES
]


@pytest.mark.parametrize("mode", ["coerce", "check", "pass"])
@pytest.mark.parametrize(("annotation", "shape"), ANNOTATED, ids=str)
async def test_a_secret_in_a_value_of_another_shape_is_redacted_everywhere(
    mode: Any, annotation: Any, shape: Any
) -> None:
    seen: list[str] = []

    def approve(request: Any) -> str:
        seen.append(f"approver {request.arguments}")
        return "once"

    def login(opts: Any, user: str = "") -> str:
        raise ValueError(f"cannot log in with {opts}")

    login.__annotations__["opts"] = annotation
    audit = [lambda record: seen.append(f"audit {record}")]
    kit = Toolkit(run_in="inline", arguments=mode, approver=approve, audit=audit[0])
    kit.register_tool_function(login, secrets=["opts.password"], permission="confirm")
    for kind in ("call_start", "chunk", "permission_request", "permission_result", "call_end", "error"):
        kit.subscribe(kind, lambda event: seen.append(f"{event.type} {event.data}"))

    response = await kit.call("login", user="ada", opts=shape)

    assert SECRET not in response.text
    assert [line for line in seen if SECRET in line] == []
    assert any("ada" in line for line in seen)
