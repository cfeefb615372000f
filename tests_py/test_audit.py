"""The audit: one line for each decision, before it takes effect, without secrets, or the call does not run."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from support.policy import Shop, answering
from support.streams import block, last, read
from toolcrib import Toolkit
from toolcrib.policy import Approval, Policy, Rule


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_every_decision_is_one_line_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    policy = Policy([Rule("deny", arguments={"path": "b"}, id="not-b"), Rule("allow", kind="read", id="reading")])
    shop = Shop(policy=policy, audit=file)

    await read(shop.kit.call_tool_function(block("look", path="a")))
    await shop.kit.view(caller="ann").call("look", path="b")
    await shop.kit.call("remove", path="a")

    first, second, third = lines(file)
    assert (first["call_id"], first["tool"], first["rule"], first["decision"], first["outcome"]) == (
        "call-1",
        "look",
        "reading",
        "allow",
        "run",
    )
    assert (second["caller"], second["rule"], second["decision"], second["outcome"]) == (
        "ann",
        "not-b",
        "deny",
        "denied",
    )
    assert (third["rule"], third["decision"], third["outcome"]) == (None, "ask", "pending")
    assert first["arguments_hash"].startswith("sha256:")
    assert first["arguments_hash"] != second["arguments_hash"]
    assert first["time"].endswith("Z")


async def test_who_answered_is_noted() -> None:
    noted: list[dict[str, Any]] = []
    approve, _ = answering(Approval("run", by="ada"))
    shop = Shop(approver=approve, audit=noted.append)

    await shop.kit.call("remove", path="a")
    await shop.kit.call("remove", path="b")
    shop.kit.end_run()
    shop.kit.approver = answering("no")[0]
    await shop.kit.call("remove", path="c")

    answers = [(line["answered_by"], line["answer"], line["outcome"]) for line in noted]
    assert answers == [("ada", "run", "run"), ("grant", "run", "run"), ("approver", "no", "denied")]


async def test_a_pending_call_has_a_line_when_it_is_asked_and_when_it_goes_on() -> None:
    noted: list[dict[str, Any]] = []
    shop = Shop(audit=noted.append)

    response = await shop.kit.call("remove", path="a")
    assert response.metadata is not None
    await read(shop.kit.resume(response.metadata["pending"], "once", by="bob"))
    second = await shop.kit.call("remove", path="b")
    assert second.metadata is not None
    await read(shop.kit.resume(second.metadata["pending"], False))

    assert [(line["outcome"], line["answered_by"]) for line in noted] == [
        ("pending", None),
        ("run", "bob"),
        ("pending", None),
        ("denied", "resume"),
    ]
    assert noted[0]["call_id"] == noted[1]["call_id"]
    assert noted[0]["arguments_hash"] == noted[1]["arguments_hash"]


async def test_secrets_are_not_noted() -> None:
    text = io.StringIO()
    approve, _ = answering("once")
    shop = Shop(approver=approve, audit=text)

    await shop.kit.call("login", user="ada", password="hunter2")
    await shop.kit.call("login", user="ada", password="other")

    first, second = (json.loads(line) for line in text.getvalue().splitlines())
    assert first["arguments"] == {"user": "ada", "password": "***"}
    assert first["arguments_hash"] == second["arguments_hash"]
    assert "hunter2" not in text.getvalue()


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ({"user": "ada", "Password": "HUNTER2"}, {"user": "ada", "password": "***"}),
        ({"user": "ada", "password": ["HUNTER2"]}, {"user": "ada", "password": "***"}),
        ({"user": "ada", "input": {"password": "HUNTER2"}}, {"user": "ada", "input": "***"}),
        ('{"user": "ada", "password": "HUNTER2"}', "***"),
    ],
)
async def test_secrets_of_what_is_denied_outright_are_not_noted_however_they_came(sent: Any, shown: Any) -> None:
    text = io.StringIO()
    shop = Shop(policy=Policy([Rule("deny", tool="login")]), audit=text)

    await read(shop.kit.call_tool_function({"type": "tool_use", "id": "1", "name": "login", "input": sent}))

    assert "HUNTER2" not in text.getvalue()
    assert json.loads(text.getvalue())["arguments"] in (shown, {"user": "ada", "password": "***"})


async def test_a_line_is_there_before_the_tool_runs() -> None:
    order: list[str] = []
    kit = Toolkit(run_in="inline", audit=lambda line: order.append("noted"))

    @kit.tool
    def work() -> str:
        order.append("ran")
        return "done"

    await kit.call("work")

    assert order == ["noted", "ran"]


class Broken:
    """A sink that is down."""

    def write(self, text: str) -> None:
        raise OSError("no space left")


async def test_what_cannot_be_noted_does_not_run(caplog: pytest.LogCaptureFixture) -> None:
    approve, _ = answering("once")
    shop = Shop(approver=approve, audit=Broken())

    with caplog.at_level(logging.WARNING, "toolcrib"):
        responses = [
            await shop.kit.call("look", path="a"),
            await shop.kit.call("remove", path="a"),
            await shop.kit.call("count", to=1),
        ]

    assert [response.code for response in responses] == ["denied"] * 3
    assert shop.ran == []
    assert "could not be recorded" in caplog.text


async def test_an_answer_that_cannot_be_noted_is_not_remembered() -> None:
    approve, asked = answering("run")
    shop = Shop(approver=approve, audit=Broken())

    await shop.kit.call("remove", path="a")
    shop.kit.audit = None
    await shop.kit.call("remove", path="b")

    assert len(asked) == 2


async def test_whatever_a_model_writes_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    shop = Shop(audit=file)

    await read(
        shop.kit.call_tool_function({"id": 'x\n{"decision":"allow"}', "name": "look", "input": {"path": "a\n\u2028b"}})
    )

    (line,) = lines(file)
    assert line["call_id"] == 'x\n{"decision":"allow"}'
    assert len(file.read_bytes().splitlines()) == 1


async def test_many_calls_at_once_mix_no_lines(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    shop = Shop(audit=file)

    await asyncio.gather(*(shop.kit.call("look", path=str(number)) for number in range(200)))

    assert sorted(int(line["arguments"]["path"]) for line in lines(file)) == list(range(200))


async def test_a_rule_in_shadow_mode_is_noted() -> None:
    noted: list[dict[str, Any]] = []
    shop = Shop(policy=Policy([Rule("deny", tool="look", shadow=True)]), audit=noted.append)

    assert (await shop.kit.call("look", path="a")).ok

    assert [(line["decision"], line["shadow"], line["outcome"]) for line in noted] == [("allow", "deny", "run")]


async def test_invalid_requests_are_not_recorded_as_decisions() -> None:
    noted: list[dict[str, Any]] = []
    shop = Shop(audit=noted.append)

    await shop.kit.call("missing")
    await shop.kit.call("look", nonsense=1)
    assert (await last(shop.kit.call_tool_function({}))).code == "bad_call"

    assert noted == []


def test_what_nothing_can_be_noted_in_is_refused(tmp_path: Path) -> None:
    kit = Toolkit()
    number: Any = 3

    with pytest.raises(TypeError, match="audit must be a path"):
        kit.audit = number
    with pytest.raises(OSError, match="missing"):
        kit.audit = tmp_path / "missing" / "audit.jsonl"

    assert kit.audit is None
    kit.audit = str(tmp_path / "audit.jsonl")
    assert kit.audit == str(tmp_path / "audit.jsonl")
