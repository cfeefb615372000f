"""State: which groups are on, in the form of AgentScope's sessions."""

from typing import Any

import pytest

from toolcrib import Toolkit, errors


@pytest.fixture
def toolkit() -> Toolkit:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.", active=True)
    toolkit.create_tool_group("files", "The disk.")
    toolkit.create_tool_group("mail", "Letters.", active=True)
    return toolkit


def active(toolkit: Toolkit) -> list[str]:
    return [name for name, group in toolkit.groups.items() if group.active]


def test_the_state_lists_the_groups_that_are_on_in_the_order_they_were_created(toolkit: Toolkit) -> None:
    assert toolkit.state_dict() == {"active_groups": ["web", "mail"]}
    assert Toolkit().state_dict() == {"active_groups": []}


def test_loading_a_state_switches_exactly_its_groups_on(toolkit: Toolkit) -> None:
    toolkit.load_state_dict({"active_groups": ["files", "mail", "unknown"]})

    assert active(toolkit) == ["files", "mail"]
    assert list(toolkit.groups) == ["web", "files", "mail"]


def test_a_state_that_was_given_can_be_loaded_again(toolkit: Toolkit) -> None:
    state = toolkit.state_dict()
    toolkit.update_tool_groups(["web", "files"], active=False)

    toolkit.load_state_dict(state)

    assert toolkit.state_dict() == state


def test_the_basic_group_is_on_whatever_the_state_says(toolkit: Toolkit) -> None:
    toolkit.register_tool_function(len, json_schema={"type": "function", "function": {"name": "len", "parameters": {}}})

    toolkit.load_state_dict({"active_groups": []})

    assert len(toolkit.get_json_schemas()) == 1


def test_loading_a_state_changes_what_is_listed(toolkit: Toolkit) -> None:
    def browse() -> str:
        return "seen"

    toolkit.register_tool_function(browse, group_name="web")
    listed = toolkit.get_json_schemas_bytes()

    toolkit.load_state_dict({"active_groups": []})

    assert (listed != b"[]", toolkit.get_json_schemas_bytes()) == (True, b"[]")


@pytest.mark.parametrize(
    "state", [None, 5, [], "active_groups", {}, {"active_groups": "web"}, {"active_groups": ("web",)}]
)
def test_an_invalid_state_is_refused_and_changes_nothing(toolkit: Toolkit, state: Any) -> None:
    for strict in (True, False):
        with pytest.raises(errors.InvalidStateError, match="active_groups key and its value must be a list"):
            toolkit.load_state_dict(state, strict=strict)

    assert active(toolkit) == ["web", "mail"]


def test_a_state_with_other_keys_is_refused_unless_it_need_not_be_strict(toolkit: Toolkit) -> None:
    state = {"active_groups": ["files"], "more": 1}
    text = "Get additional keys in the state_dict: ['active_groups', 'more'], but only \"active_groups\" is expected."

    with pytest.raises(ValueError) as refused:
        toolkit.load_state_dict(state)

    assert str(refused.value) == text
    assert active(toolkit) == ["web", "mail"]
    toolkit.load_state_dict(state, False)
    assert active(toolkit) == ["files"]


def test_what_is_not_text_names_no_group(toolkit: Toolkit) -> None:
    state: Any = {"active_groups": [1, None, "\udcff", ["web"], "files"]}

    toolkit.load_state_dict(state)

    assert active(toolkit) == ["files"]


def test_a_subclass_of_the_dictionary_is_a_state_too(toolkit: Toolkit) -> None:
    class State(dict[str, Any]):
        pass

    toolkit.load_state_dict(State(active_groups=["files"]))

    assert active(toolkit) == ["files"]
