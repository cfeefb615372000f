"""An approval is for the presets that the tool had when it was asked about, also for those that JSON cannot hold."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
import pathlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

from toolcrib import Approvals, Toolkit
from toolcrib.errors import MisplacedPendingError

if TYPE_CHECKING:
    from pathlib import Path


class Session:
    def __init__(self, user: str) -> None:
        self.user = user


class Connection:
    """Holds what cannot be pickled."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.lock = threading.Lock()


class Slotted:
    """Can be referred to neither by pickle nor weakly."""

    __slots__ = ("lock", "user")

    def __init__(self, user: str) -> None:
        self.user = user
        self.lock = threading.Lock()


def start(preset: Any, folder: Path) -> Toolkit:
    kit = Toolkit(run_in="inline", approvals=Approvals(folder / "approvals"))

    def pay(amount: int, session: object) -> str:
        return f"paid {amount}"

    kit.register_tool_function(pay, permission="confirm", preset_kwargs={"session": preset})
    return kit


async def ask(preset: Any, folder: Path) -> Any:
    """Call the tool, and return the question that its response holds."""
    metadata = (await start(preset, folder).call("pay", amount=1)).metadata
    assert metadata is not None
    return metadata["pending"]


async def resume(kit: Toolkit, pending: dict[str, Any]) -> str:
    text = ""
    async for response in kit.resume(pending, True):
        text = response.text
    return text


PAIRS: list[tuple[Any, Any]] = [
    (Session("alice"), Session("bob")),
    (Connection("alice"), Connection("bob")),
    (Connection("alice"), Connection("alice")),
    (Slotted("alice"), Slotted("bob")),
    (b"alice", b"bob"),
    ({1, 2}, {1, 3}),
    (pathlib.Path("/a"), pathlib.Path("/b")),
    (math.inf, -math.inf),
    (datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)),
    ([Session("alice")], [Session("bob")]),
    ({"key": b"a"}, {"key": b"b"}),
    ({1: "a"}, {1: "b"}),
    (b"1", "1"),
    (lambda: 1, lambda: 2),
]


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{type(one).__name__}-{n}" for n, (one, _) in enumerate(PAIRS)])
async def test_an_approval_for_one_preset_is_refused_with_another(one: Any, other: Any, tmp_path: Path) -> None:
    pending = await ask(one, tmp_path)

    with pytest.raises(MisplacedPendingError, match="presets"):
        await resume(start(other, tmp_path), pending)


SAME: list[tuple[Any, Any]] = [
    (Session("alice"), Session("alice")),
    (b"a", b"a"),
    ({"x", "y", "z"}, {"z", "y", "x"}),
    (math.nan, math.nan),
    (None, None),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=[type(one).__name__ for one, _ in SAME])
async def test_an_equal_preset_is_the_same(one: Any, other: Any, tmp_path: Path) -> None:
    pending = await ask(one, tmp_path)

    assert await resume(start(other, tmp_path), pending) == "paid 1"


async def test_an_object_that_cannot_be_written_is_the_same_only_while_it_lives(tmp_path: Path) -> None:
    connection = Connection("alice")
    pending = await ask(connection, tmp_path)

    assert await resume(start(connection, tmp_path), pending) == "paid 1"


@pytest.mark.parametrize("other", ["bob", b"alice", Connection("alice")], ids=["text", "bytes", "object"])
async def test_what_a_partial_binds_is_a_preset(other: Any, tmp_path: Path) -> None:
    def pay(*accounts: Any, amount: int) -> str:
        return f"paid {amount} from {accounts[0]}"

    def move(account: Any, /, amount: int) -> str:
        return f"moved {amount} from {account}"

    def kit(account: Any) -> Toolkit:
        made = Toolkit(run_in="inline", approvals=Approvals(tmp_path / "approvals"))
        for function in (pay, move):
            made.register_tool_function(functools.partial(function, account), permission="confirm")
        return made

    for tool in ("pay", "move"):
        metadata = (await kit("alice").call(tool, amount=1)).metadata
        assert metadata is not None
        with pytest.raises(MisplacedPendingError, match="presets"):
            await resume(kit(other), metadata["pending"])
        assert (await resume(kit("alice"), metadata["pending"])).endswith("from alice")


@dataclasses.dataclass(frozen=True)
class Account:
    """A value, whose method is a tool."""

    owner: str

    def pay(self, amount: int) -> str:
        return f"paid {amount} from {self.owner}"


class Bank:
    """A service, which changes while it is used."""

    name = "bank"

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls = 0

    def pay(self, amount: int) -> str:
        self.calls += 1
        return f"paid {amount} from {self.name}"

    @classmethod
    def pay_by_class(cls, amount: int) -> str:
        return f"paid {amount} from {cls.name}"


class OtherBank(Bank):
    """A service of another class."""

    name = "other"


class Till:
    """An object that is called itself."""

    def __call__(self, amount: int) -> str:
        return f"paid {amount}"


class OtherTill(Till):
    """An object that is called itself."""


def paying(function: Any, folder: Path) -> Toolkit:
    kit = Toolkit(run_in="inline", approvals=Approvals(folder / "approvals"))
    kit.register_tool_function(function, func_name="pay", permission="confirm")
    return kit


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Account("alice").pay, Account("bob").pay),
        (Bank().pay, OtherBank().pay),
        (Bank.pay_by_class, OtherBank.pay_by_class),
        (Bank().pay, Account("alice").pay),
        (Till(), OtherTill()),
    ],
    ids=["value", "service", "class", "both", "callable"],
)
async def test_an_approval_for_a_method_of_one_object_is_refused_with_another(
    one: Any, other: Any, tmp_path: Path
) -> None:
    metadata = (await paying(one, tmp_path).call("pay", amount=1)).metadata
    assert metadata is not None

    with pytest.raises(MisplacedPendingError, match="presets"):
        await resume(paying(other, tmp_path), metadata["pending"])


@pytest.mark.parametrize(
    ("one", "other"),
    [(Account("alice").pay, Account("alice").pay), (Bank().pay, Bank().pay), (Till(), Till())],
    ids=["value", "service", "callable"],
)
async def test_an_equal_object_and_a_service_after_a_restart_are_the_same(one: Any, other: Any, tmp_path: Path) -> None:
    first = paying(one, tmp_path)
    metadata = (await first.call("pay", amount=1)).metadata
    assert metadata is not None
    if isinstance(getattr(one, "__self__", None), Bank):
        one(2)

    assert (await resume(paying(other, tmp_path), metadata["pending"])).startswith("paid 1")


async def test_arguments_too_deep_to_be_kept_are_answered() -> None:
    kit = Toolkit(run_in="inline")

    @kit.tool(permission="confirm")
    def save(data: dict[str, Any]) -> str:
        return "saved"

    for levels in (118, 119, 121, 126):
        deep: dict[str, Any] = {}
        for _ in range(levels - 1):
            deep = {"a": deep}

        response = await kit.call("save", data=deep)

        assert response.code in ("pending", "denied"), levels
    assert "levels deep" in response.text
