"""Traits that a developer declares for a tool: tags, kind, permission, secrets, other names."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib import Toolkit


def send(address: str, token: str = "") -> str:
    return address


def test_a_tool_of_which_nothing_is_said_runs_by_itself_and_is_of_no_kind() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(send)

    tool = toolkit.tools["send"]
    assert (tool.tags, tool.kind, tool.permission, tool.secrets, tool.aliases) == ([], "other", "auto", (), {})


def test_what_is_said_of_a_tool_can_be_read_there() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(
        send,
        tags=["net", "mail", "net"],
        kind="execute",
        permission="confirm",
        secrets=["token"],
        aliases={"to": "address"},
    )

    tool = toolkit.tools["send"]
    assert (tool.tags, tool.kind, tool.permission) == (["net", "mail"], "execute", "confirm")
    assert (tool.secrets, tool.aliases) == (("token",), {"to": "address"})


def test_the_decorator_takes_what_is_said_of_a_tool() -> None:
    toolkit = Toolkit()

    @toolkit.tool(kind="write", tags=("files",))
    def save(text: str) -> str:
        return text

    assert (toolkit.tools["save"].kind, toolkit.tools["save"].tags) == ("edit", ["files"])


async def test_a_tool_in_several_groups_can_be_called_while_one_of_them_is_on() -> None:
    toolkit = Toolkit(run_in="inline")
    toolkit.create_tool_group("mail", "")
    toolkit.create_tool_group("net", "", active=True)

    toolkit.register_tool_function(send, "mail", groups=["net", "mail", "net"])

    assert (await toolkit.call("send", address="a")).text == "a"
    assert toolkit.tools["send"].groups == ["mail", "net"]
    toolkit.update_tool_groups(["net"], active=False)
    assert (await toolkit.call("send", address="a")).code == "inactive_group"


def test_what_was_said_survives_an_extended_model() -> None:
    pydantic = pytest.importorskip("pydantic")
    model: Any = pydantic.create_model("Extra", note=(str, ""))
    toolkit = Toolkit()
    toolkit.register_tool_function(send, kind="fetch", secrets=["token"])

    toolkit.set_extended_model("send", model)

    assert (toolkit.tools["send"].kind, toolkit.tools["send"].secrets) == ("fetch", ("token",))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kind": "Read"}, "kind must be one of 'read'"),
        ({"permission": "ask"}, "permission must be 'auto', 'confirm' or 'kind', not 'ask'"),
        ({"secrets": ["tokken"]}, "unknown parameter `tokken` in secrets"),
        ({"aliases": {"to": "adress"}}, "invalid alias `to`: unknown parameter `adress`"),
        ({"aliases": {"token": "address"}}, "`token` is a parameter itself"),
        ({"tags": [""]}, "a tag must not be empty"),
        ({"groups": ["nowhere"]}, "Tool group 'nowhere' not found"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_registered(options: dict[str, Any], text: str) -> None:
    toolkit = Toolkit()

    with pytest.raises(ValueError, match=text):
        toolkit.register_tool_function(send, **options)

    assert len(toolkit.tools) == 0


def test_a_string_is_one_name() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("desk", "Paper.")

    toolkit.register_tool_function(send, groups="desk", tags="paper", secrets="token")

    tool = toolkit.tools["send"]
    assert (tool.groups, tool.tags, tool.secrets) == (["basic", "desk"], ["paper"], ("token",))
