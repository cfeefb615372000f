"""Rules and approvers see every argument that the tool gets, sent or not, in one form for every type and spelling."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import math
import pathlib
import uuid
from typing import Annotated, Any, ClassVar

import attrs
import msgspec
import pydantic
import pytest

from toolcrib import Policy, Toolkit
from toolcrib.policy import Approval, ApprovalRequest, Rule


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
    (decimal.Decimal("1.50"), 1.5),
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


# Arguments that were sent


class Bill(pydantic.BaseModel):
    amount: decimal.Decimal


@dataclasses.dataclass
class Payment:
    amount: decimal.Decimal


class Transfer(msgspec.Struct):
    amount: decimal.Decimal


class Stripped(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(str_strip_whitespace=True)

    word: str


def lower(word: str) -> str:
    return word.strip().lower()


@attrs.define
class Command:
    word: str = attrs.field(converter=lower)


@dataclasses.dataclass
class Opened:
    host: str
    mode: dataclasses.InitVar[str] = "read"


HALF_A_THOUSAND = ["500", "5e2", "５００", " 500 ", "500.00", "5_00", 500, 500.0]
TOMORROW = ["2026-11-16", "2026-11-16T00:00:00"]
HTTP = ["http://evil.com", "HTTP://EVIL.com", "http:evil.com", "http:\\\\evil.com", "http://evil.com:80/"]
WORDS = ["delete", " DELETE ", "Delete"]
ID = uuid.UUID("12345678-1234-5678-1234-567812345678")

SPELLINGS: list[tuple[Any, str, Any, list[Any]]] = [
    (decimal.Decimal, "what", {"gt": 100}, HALF_A_THOUSAND),
    (decimal.Decimal, "what", 500, HALF_A_THOUSAND),
    (decimal.Decimal, "what", "500", HALF_A_THOUSAND),
    (decimal.Decimal, "what", {"prefix": "5"}, HALF_A_THOUSAND),
    (decimal.Decimal, "what", {"gt": 100}, ["Infinity", "NaN", "1e5000"]),
    (decimal.Decimal, "what", {"gt": 100}, ["100.000000000000000000000000001"]),
    (decimal.Decimal | None, "what", {"gt": 100}, HALF_A_THOUSAND),
    (list[decimal.Decimal], "what[*]", {"gt": 100}, [["1", spelling] for spelling in HALF_A_THOUSAND]),
    (dict[str, decimal.Decimal], "what.a", {"gt": 100}, [{"a": spelling} for spelling in HALF_A_THOUSAND]),
    (fractions.Fraction, "what", {"gt": 100}, ["1000/2", "500", "1000/3", "5e2", 500]),
    (Bill, "what.amount", {"gt": 100}, [{"amount": spelling} for spelling in ["500", "5e2", "５００", 500]]),
    (Payment, "what.amount", {"gt": 100}, [{"amount": spelling} for spelling in HALF_A_THOUSAND]),
    (Transfer, "what.amount", {"gt": 100}, [{"amount": spelling} for spelling in ["500", "5e2", 500]]),
    (datetime.date, "what", "2026-11-16", TOMORROW),
    (datetime.datetime, "what", "2026-11-16T12:00:00Z", ["2026-11-16T13:00:00+01:00", "2026-11-16 12:00:00+00:00"]),
    (datetime.time, "what", "12:00:00Z", ["12:00:00+00:00", "13:00+01:00"]),
    (datetime.timedelta, "what", "PT1H", ["PT60M", "01:00:00", "PT3600S"]),
    (uuid.UUID, "what", str(ID), [ID.hex, ID.urn, f"{{{ID}}}", str(ID).upper()]),
    (ipaddress.IPv6Address, "what", "::1", ["0:0:0:0:0:0:0:1", "::0001"]),
    (ipaddress.IPv4Network, "what", "10.0.0.0/8", ["10.0.0.0/255.0.0.0"]),
    (pathlib.Path, "what", {"prefix": "/etc"}, ["/./etc/passwd", "//etc/passwd", "/etc//passwd", "///etc/passwd"]),
    (pydantic.HttpUrl, "what", {"prefix": "http://evil.com"}, HTTP),
    (Stripped, "what.word", "delete", [{"word": " delete\n"}]),
    (Command, "what.word", "delete", [{"word": word} for word in WORDS]),
    (Opened, "what.mode", "delete", [{"host": "db", "mode": "delete"}]),
    (pydantic.SecretStr, "what", "delete", ["delete"]),
    (str, "what", {"gt": 100}, ["500", "5e2", "５００", "1000/3", "inf"]),
]


@pytest.mark.parametrize(("annotation", "path", "condition", "spellings"), SPELLINGS, ids=str)
@pytest.mark.parametrize("decision", ["deny", "ask"])
async def test_a_rule_sees_the_value_in_every_spelling(
    annotation: Any, path: str, condition: Any, spellings: list[Any], decision: Any
) -> None:
    ran: list[Any] = []

    def work(what: Any) -> str:
        ran.append(what)
        return "ran"

    work.__annotations__["what"] = annotation
    kit = Toolkit(run_in="inline", policy=Policy([Rule(decision, tool="work", arguments={path: condition})]))
    kit.register_tool_function(work)

    codes = {str(spelling): (await kit.call("work", what=spelling)).code for spelling in spellings}

    assert codes == dict.fromkeys(codes, {"deny": "denied", "ask": "pending"}[decision])
    assert ran == []


async def test_a_rule_that_allows_wants_a_number() -> None:
    kit = Toolkit(run_in="inline", policy=Policy([Rule("allow", arguments={"what": {"lt": 100}})], "deny"))

    @kit.tool
    def pay(what: decimal.Decimal) -> str:
        return f"paid {what}"

    @kit.tool
    def name(what: str) -> str:
        return f"named {what}"

    assert (await kit.call("pay", what="5e1")).text == "paid 5E+1"
    assert (await kit.call("pay", what="99.99999999999999999999999999")).code is None
    assert (await kit.call("pay", what="100.0000000000000000000000001")).code == "denied"
    assert (await kit.call("pay", what="NaN")).code == "denied"
    assert (await kit.call("name", what="50")).code == "denied"


BUILT: list[decimal.Decimal] = []


def counted(amount: decimal.Decimal) -> decimal.Decimal:
    BUILT.append(amount)
    return amount


Amount = Annotated[decimal.Decimal, pydantic.AfterValidator(counted)]


class Order(pydantic.BaseModel):
    amount: Amount
    when: datetime.date
    note: str = "none"


async def test_approver_audit_and_events_see_one_form() -> None:
    seen: list[Any] = []
    BUILT.clear()
    kit = Toolkit(run_in="inline", audit=lambda record: seen.append(record["arguments"]))
    kit.approver = lambda request: seen.append(request.arguments) or "once"  # type: ignore[func-returns-value]
    kit.subscribe("permission_request", lambda event: seen.append(event.data["arguments"]))

    @kit.tool(permission="confirm", secrets=["order.note"])
    def pay(order: Order) -> str:
        return f"{order.amount} {order.when} {order.note}"

    response = await kit.call("pay", order={"amount": "5e2", "when": "2026-11-16T00:00:00", "note": "x"})

    assert response.text == "5E+2 2026-11-16 x"
    assert seen == [{"order": {"amount": 500, "when": "2026-11-16", "note": "***"}}] * 3
    assert BUILT == [500], "the objects that were decided about are those that run"


async def test_a_resumed_call_is_built_once_and_decided_in_the_same_form() -> None:
    kit = Toolkit(run_in="inline", policy=Policy([Rule("ask", tool="pay", arguments={"amount": {"gt": 100}})]))

    @kit.tool
    def pay(amount: Amount) -> str:
        return f"paid {amount}"

    pending = (await kit.call("pay", amount="5e2")).metadata["pending"]  # type: ignore[index]
    BUILT.clear()
    responses = [response async for response in kit.resume(pending, True)]
    assert kit.policy is not None
    kit.policy.add(Rule("deny", tool="pay", arguments={"amount": 500}))

    assert responses[-1].text == "paid 5E+2"
    assert BUILT == [500]
    assert (await kit.call("pay", amount="500.0")).code == "denied"


async def test_arguments_that_an_approver_leaves_alone_run_as_they_were_sent() -> None:
    got: list[Any] = []
    digits = "0.1234567890123456789012345"
    kit = Toolkit(run_in="inline", policy=Policy([Rule("ask", tool="pay")]))
    kit.approver = lambda request: Approval("once", arguments={**request.arguments, "to": "bob"})

    @kit.tool(secrets=["key"])
    def pay(amount: decimal.Decimal, to: str, key: str, kind: Any = object) -> str:
        got.extend([amount, to, key, kind])
        return "paid"

    await kit.call("pay", amount=digits, to="eve", key="hunter2")

    assert got == [decimal.Decimal(digits), "bob", "hunter2", object]


def test_explaining_and_checking_show_the_form_that_rules_see() -> None:
    policy = Policy([Rule("deny", tool="pay", arguments={"amount": {"gt": 1000}})])
    kit = Toolkit(run_in="inline", policy=policy)

    @kit.tool
    def pay(amount: decimal.Decimal) -> str:
        return "paid"

    call = {"name": "pay", "input": {"amount": "5e2"}}

    assert "the call has 500" in str(policy.explain(call, toolkit=kit))
    assert kit.check({"name": "pay", "input": {"amount": "5e3"}})["would"] == "deny"
