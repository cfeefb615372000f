"""Rules and approvers see every default that the model leaves out, whatever type it has."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import uuid
from typing import Any, ClassVar

import attrs
import msgspec
import pydantic
import pytest

from toolcrib import Policy, Toolkit
from toolcrib.policy import ApprovalRequest, Rule


class Mode(enum.Enum):
    READ = "read"
    DELETE = "delete"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 9


@dataclasses.dataclass
class Target:
    host: str
    mode: Mode = Mode.DELETE


class Login(pydantic.BaseModel):
    user: str
    scopes: set[str] = {"all"}


@attrs.define
class Box:
    path: pathlib.Path


class Named(pydantic.BaseModel):
    host: str = pydantic.Field(default="db", alias="hostName")
    mode: Mode = pydantic.Field(default=Mode.DELETE, validation_alias="modus", serialization_alias="other")
    path: str = pydantic.Field(default="/etc", validation_alias=pydantic.AliasChoices("where", "path"), exclude=True)
    level: int = pydantic.Field(default=9, validation_alias=pydantic.AliasPath("levels", 0))

    @pydantic.field_serializer("host")
    def shout(self, host: str) -> str:
        return host.upper()


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    user: str


class Hosts(pydantic.RootModel[list[str]]):
    pass


@pydantic.dataclasses.dataclass
class Renamed:
    host: str = pydantic.Field(default="db", alias="hostName")


@dataclasses.dataclass
class Counted:
    kind: ClassVar[str] = "counted"
    host: str = "db"
    mode: dataclasses.InitVar[str] = "delete"
    count: int = dataclasses.field(init=False, default=7)


@attrs.define
class Hidden:
    _host: str = "db"
    count: int = attrs.field(init=False, default=7)


class Tagged(msgspec.Struct, tag="host", tag_field="kind", rename="camel", omit_defaults=True):
    host_name: str = "db"


class Row(msgspec.Struct, array_like=True, tag="row"):
    host: str = "db"
    mode: Mode = Mode.DELETE


class Plain:
    pass


UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")

CASES: list[tuple[Any, Any]] = [
    (Mode.DELETE, "delete"),
    (Level.HIGH, 9),
    (pathlib.Path("/etc"), "/etc"),
    (pathlib.PurePosixPath("/etc"), "/etc"),
    (datetime.date(2026, 1, 2), "2026-01-02"),
    (datetime.datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
    (decimal.Decimal("1.50"), "1.50"),
    (UUID, str(UUID)),
    (b"rm", "rm"),
    (bytearray(b"rm"), "rm"),
    ({3, 1, 2}, [1, 2, 3]),
    (frozenset({"a"}), ["a"]),
    (math.inf, "inf"),
    (-math.inf, "-inf"),
    (math.nan, "nan"),
    (Target("db"), {"host": "db", "mode": "delete"}),
    (Login(user="root"), {"user": "root", "scopes": ["all"]}),
    (Box(pathlib.Path("/etc")), {"path": "/etc"}),
    (Named(), {"hostName": "db", "modus": "delete", "where": "/etc", "levels": 9}),
    (Open(user="root", shell="sh"), {"user": "root", "shell": "sh"}),  # type: ignore[call-arg]
    (Hosts(["db"]), ["db"]),
    (Renamed(), {"hostName": "db"}),
    (Counted(), {"host": "db", "mode": "delete"}),
    (Hidden(), {"host": "db"}),
    (Tagged(), {"hostName": "db", "kind": "host"}),
    (Row(), ["row", "db", "delete"]),
    (collections.deque([Hidden()]), [{"host": "db"}]),
    ([Mode.DELETE, {"at": pathlib.Path("/etc")}], ["delete", {"at": "/etc"}]),
    ((1, {2}), [1, [2]]),
    (Plain(), f"<{__name__}.Plain object>"),
    ([Plain()], [f"<{__name__}.Plain object>"]),
]


def toolkit(default: Any, policy: Policy, asked: list[dict[str, Any]]) -> tuple[Toolkit, list[Any]]:
    ran: list[Any] = []

    def work(name: str, what: Any = default) -> str:
        ran.append(what)
        return "ran"

    def approve(request: ApprovalRequest) -> str:
        asked.append(request.arguments)
        return "once"

    kit = Toolkit(run_in="inline", policy=policy, approver=approve)
    kit.register_tool_function(work)
    return kit, ran


@pytest.mark.parametrize(("default", "seen"), CASES, ids=[repr(default)[:30] for default, _ in CASES])
async def test_a_default_is_denied_and_shown_like_a_sent_value(default: Any, seen: Any) -> None:
    asked: list[dict[str, Any]] = []
    denying, ran = toolkit(default, Policy([Rule("deny", tool="work", arguments={"what": {"equals": seen}})]), asked)
    asking, _ = toolkit(default, Policy([Rule("ask", tool="work")]), asked)

    denied = await denying.call("work", name="x")
    approved = await asking.call("work", name="x")

    assert (denied.code, ran) == ("denied", [])
    assert denying.check({"name": "work", "input": {"name": "x"}})["would"] == "deny"
    assert approved.text == "ran"
    assert asked == [{"name": "x", "what": seen}]


async def test_a_default_factory_runs_once_and_the_tool_gets_the_evaluated_value() -> None:
    made: list[set[str]] = []

    def make() -> set[str]:
        made.append({f"/tmp/{len(made)}"})
        return made[-1]

    ran: list[Any] = []
    asked: list[Any] = []

    def work(where: set[str] = pydantic.Field(default_factory=make)) -> str:
        ran.append(where)
        return "ran"

    kit = Toolkit(run_in="inline", policy=Policy([Rule("ask", tool="work")]))
    kit.approver = lambda request: asked.append(request.arguments) or "once"  # type: ignore[func-returns-value]
    kit.register_tool_function(work)

    response = await kit.call("work")

    assert response.text == "ran"
    assert len(made) == 1
    assert ran[0] is made[0]
    assert asked == [{"where": ["/tmp/0"]}]


async def test_a_rule_denies_a_default_that_is_made() -> None:
    def work(where: list[str] = pydantic.Field(default_factory=lambda: ["/etc"])) -> str:
        return "ran"

    rule = Rule("deny", tool="work", arguments={"where[0]": {"prefix": "/etc"}})
    kit = Toolkit(run_in="inline", policy=Policy([rule]))
    kit.register_tool_function(work)

    assert (await kit.call("work")).code == "denied"
    assert (await kit.call("work", where=["/home"])).text == "ran"


async def test_a_default_that_contains_itself_is_seen_in_part() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    loop.append(loop)
    kit, ran = toolkit(loop, Policy([Rule("deny", tool="work", arguments={"what[0]": 1})]), [])

    assert (await kit.call("work", name="x")).code == "denied"
    assert ran == []


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ({}, {"hostName": "db", "modus": "delete", "where": "/etc", "levels": 9}),
        ({"modus": "read"}, {"hostName": "db", "modus": "read", "where": "/etc", "levels": 9}),
        ({"levels": [1, 2]}, {"hostName": "db", "modus": "delete", "where": "/etc", "levels": [1, 2]}),
    ],
)
async def test_a_default_inside_of_a_model_has_the_name_that_a_model_would_send(
    sent: dict[str, Any], seen: dict[str, Any]
) -> None:
    asked: list[Any] = []

    def work(what: Named) -> str:
        return what.path

    kit = Toolkit(run_in="inline", policy=Policy([Rule("ask", tool="work")]))
    kit.approver = lambda request: asked.append(request.arguments) or "once"  # type: ignore[func-returns-value]
    kit.register_tool_function(work)

    response = await kit.call("work", what=sent)

    assert response.text == "/etc"
    assert asked == [{"what": seen}]


@pytest.mark.parametrize("default", [default for default, _ in CASES[16:26]], ids=repr)
async def test_an_object_of_the_program_waits_for_approval_and_is_built_again(default: Any) -> None:
    got: list[Any] = []

    def work(what: Any) -> str:
        got.append(what)
        return "ran"

    work.__annotations__["what"] = type(default)
    kit = Toolkit(run_in="inline", policy=Policy([Rule("ask", tool="work")]))
    kit.register_tool_function(work)

    pending = (await kit.call("work", what=default)).metadata["pending"]  # type: ignore[index]
    responses = [response async for response in kit.resume(pending, True)]

    assert responses[-1].text == "ran"
    assert got == [default]
