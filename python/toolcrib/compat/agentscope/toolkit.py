"""`Toolkit`: toolcrib's toolkit in the place of AgentScope's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import toolcrib
from toolcrib.compat.agentscope import _original
from toolcrib.compat.agentscope._original import ToolResponse
from toolcrib.compat.agentscope.records import Groups, Skills, Tools
from toolcrib.compat.agentscope.tracing import conventions
from toolcrib.errors import SkillDirectoryError, SkillFileError, SkillFrontMatterError, ToolcribError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from os import PathLike

    from toolcrib._core import _Dialect

__all__ = ["Toolkit"]

_open_stream = toolcrib.Toolkit.call_tool_function
_MISSING: Any = object()
_SKILL_TEXTS: dict[type[ToolcribError], str] = {
    SkillDirectoryError: "The skill directory '{}' does not exist or is not a directory.",
    SkillFileError: "The skill directory '{}' must include a SKILL.md file at the top level.",
    SkillFrontMatterError: (
        "The SKILL.md file in '{}' must have a YAML Front Matter including `name` and `description` fields."
    ),
}


class Toolkit(toolcrib.Toolkit, _original.Original):  # type: ignore[misc]
    """A toolkit that behaves as the one of AgentScope 1.x.

    Arguments are not validated, exceptions of functions become responses and those of generators propagate, synchronous
    tools run on the event loop, chunks are delivered as the tool yields them without a response for the whole result,
    and a conflicting extended model raises when the schemas are read. Records and responses have AgentScope's classes.
    The texts about skills, the meta tool and background tasks are those of the installed AgentScope.

    Args:
        agent_skill_instruction: The introduction of the skills in the prompt.
        agent_skill_template: The text for each skill, with `{name}`, `{description}` and `{dir}`.
    """

    _keeps_mcp_names = True
    _DEFAULT_AGENT_SKILL_INSTRUCTION: str | None = getattr(_original.Original, "_DEFAULT_AGENT_SKILL_INSTRUCTION", None)
    _DEFAULT_AGENT_SKILL_TEMPLATE: str | None = getattr(_original.Original, "_DEFAULT_AGENT_SKILL_TEMPLATE", None)

    def __init__(self, agent_skill_instruction: str | None = None, agent_skill_template: str | None = None) -> None:
        _original.StateModule.__init__(self)
        toolcrib.Toolkit.__init__(
            self,
            agent_skill_instruction or self._DEFAULT_AGENT_SKILL_INSTRUCTION,
            agent_skill_template or self._DEFAULT_AGENT_SKILL_TEMPLATE,
            arguments="pass",
            errors="compat",
            run_in="inline",
        )
        self._configure()

    def _configure(self) -> None:
        self._defer_conflicts()
        self._deliver_as_given()
        if _original.IS_INSTALLED:
            self._respond_with(ToolResponse)
            found = conventions()
            if found is not None:
                self._trace_with(found)

    async def call_tool_function(  # type: ignore[override]
        self, tool_call: Any, *, dialect: _Dialect | None = None
    ) -> AsyncGenerator[ToolResponse, None]:
        """Return the stream of a call; nothing runs before its first step.

        Args:
            tool_call: `{"type": "tool_use", "id": ..., "name": ..., "input": {...}}`, of which `name` is needed; a
                `ToolCall`, or anything that `ToolCall.read` understands.
            dialect: The dialect of the schemas that the model was given, if not the toolkit's own.

        Raises:
            TypeError: If `tool_call` can be no call at all.
            UnknownDialectError: If there is no such dialect.
        """
        return _open_stream(self, tool_call) if dialect is None else _open_stream(self, tool_call, dialect=dialect)

    # State of AgentScope's own objects.

    @property
    def _middlewares(self) -> list[Any]:
        return super()._middlewares

    @_middlewares.setter
    def _middlewares(self, middlewares: Iterable[Any]) -> None:
        super()._middlewares[:] = middlewares

    def __setstate__(self, parts: dict[str, Any]) -> None:
        if "texts" in parts:
            super().__setstate__(parts)
            return
        # The attributes of AgentScope's class, which `install` has replaced since it was pickled.
        attributes = {name: value for name, value in parts.items() if not name.startswith("_async_")}
        Toolkit.__init__(self)
        for name, value in attributes.items():
            setattr(self, name, value)

    # The records.

    def _watch_records(self) -> None:
        self._before_use(self._apply_edits)

    def _apply_edits(self, name: str | None = None) -> None:
        attributes = vars(self)
        if "_groups" in attributes:
            attributes["_groups"].apply()
        if "_tools" in attributes:
            attributes["_tools"].apply(name)

    def _settle(self) -> None:
        self._apply_edits()
        if "_skills" in vars(self):
            self.skills.apply()

    def _refresh_groups(self) -> None:
        groups = vars(self).get("_groups")
        if groups is not None:
            groups.refresh()

    def _remove(self, name: str) -> None:
        super().remove_tool_function(name)

    def _remove_group(self, name: str) -> None:
        super().remove_tool_groups(name)

    def _remove_skill(self, name: str) -> None:
        super().remove_agent_skill(name)

    @property
    def tools(self) -> Tools:
        """The tools by name, in the order of registration. Changes of the dictionary and its records take effect."""
        found = vars(self).get("_tools")
        if found is None:
            found = self.__dict__["_tools"] = Tools(self)
        return found

    @tools.setter
    def tools(self, tools: Mapping[str, Any]) -> None:
        _replace(self.tools, tools)

    @property
    def groups(self) -> Groups:
        """The groups by name, in the order of creation, without `basic`. Changes of it and its records take effect."""
        found = vars(self).get("_groups")
        if found is None:
            found = self.__dict__["_groups"] = Groups(self)
        return found

    @groups.setter
    def groups(self, groups: Mapping[str, Any]) -> None:
        _replace(self.groups, groups)

    @property
    def skills(self) -> Skills:
        """The skills by name, in the order of registration. Changes of the dictionary and its entries take effect."""
        found = vars(self).get("_skills")
        if found is None:
            found = self.__dict__["_skills"] = Skills(self)
        return found

    @skills.setter
    def skills(self, skills: Mapping[str, Any]) -> None:
        _replace(self.skills, skills)

    def set_extended_model(
        self,
        func_name: Any = _MISSING,
        model: Any = _MISSING,
        *,
        finish_function_name: Any = _MISSING,
        structured_model: Any = _MISSING,
    ) -> None:
        """Add the fields of a pydantic model to the parameters of a tool.

        Args:
            func_name: The tool's name.
            model: A class, or None to remove its fields.
            finish_function_name: The name of a tool that ends the conversation: `structured_model` also validates its
                arguments; see `set_finish_function`.
            structured_model: The model for it.

        Raises:
            TypeError: If `model` is not a child class of `pydantic.BaseModel`.
            UnknownToolError: If the tool is unknown.
        """
        self._apply_edits()
        if finish_function_name is not _MISSING and structured_model is not _MISSING:
            name, model = finish_function_name, structured_model
            self.set_finish_function(name, model)
        else:
            name = func_name
            given = {"func_name": func_name, "model": model}
            given |= {"finish_function_name": finish_function_name, "structured_model": structured_model}
            super().set_extended_model(**{key: value for key, value in given.items() if value is not _MISSING})
        if "_tools" in vars(self):
            self.tools.adopt(name, extended_model=model)

    # Groups.

    def update_tool_groups(self, group_names: str | Iterable[str], active: bool) -> None:  # noqa: D102 inherited
        self._apply_edits()
        super().update_tool_groups(group_names, active)
        self._refresh_groups()

    def remove_tool_groups(self, group_names: str | list[str]) -> None:  # noqa: D102 inherited
        self._apply_edits()
        super().remove_tool_groups(group_names)
        self._refresh_groups()

    def clear(self) -> None:  # noqa: D102 inherited
        super().clear()
        if "_tools" in vars(self):
            self.tools.forget_all()
        self._refresh_groups()

    def state_dict(self) -> dict[str, Any]:  # noqa: D102 inherited
        self._apply_edits()
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:  # noqa: D102 inherited
        super().load_state_dict(state_dict, strict)
        self._refresh_groups()

    def get_activated_notes(self) -> str:  # noqa: D102 inherited
        self._apply_edits()
        return super().get_activated_notes()

    def reset_equipped_tools(self, **kwargs: bool) -> ToolResponse:  # noqa: D102 its docstring is set below
        self._apply_edits()
        response = super().reset_equipped_tools(**kwargs)
        self._refresh_groups()
        delivered: ToolResponse = self._delivered(response)
        return delivered

    # Skills.

    @property
    def _agent_skill_instruction(self) -> str | None:
        return self._skill_texts[0]

    @_agent_skill_instruction.setter
    def _agent_skill_instruction(self, text: str | None) -> None:
        self._describe_skills(text, self._agent_skill_template)

    @property
    def _agent_skill_template(self) -> str | None:
        return self._skill_texts[1]

    @_agent_skill_template.setter
    def _agent_skill_template(self, text: str | None) -> None:
        self._describe_skills(self._agent_skill_instruction, text)

    def register_agent_skill(self, skill_dir: str | PathLike[str]) -> None:  # noqa: D102 inherited
        try:
            super().register_agent_skill(skill_dir)
        except tuple(_SKILL_TEXTS) as error:
            raise type(error)(_SKILL_TEXTS[type(error)].format(skill_dir)) from error

    def get_agent_skill_prompt(self) -> str | None:  # noqa: D102 inherited
        if "_skills" in vars(self):
            self.skills.apply()
        return super().get_agent_skill_prompt()

    def remove_agent_skill(self, name: str) -> None:  # noqa: D102 inherited
        super().remove_agent_skill(name)
        if "_skills" in vars(self):
            self.skills.forget(name)

    # Background tasks.

    def _reported(self, response: Any) -> ToolResponse:
        """Return a response about a task as AgentScope gives it: without the task's id in the metadata."""
        if isinstance(response, toolcrib.ToolResponse) and isinstance(response.metadata, dict):
            metadata = {name: value for name, value in response.metadata.items() if name != "task_id"}
            response.metadata = metadata or None
        delivered: ToolResponse = self._delivered(response)
        return delivered

    # Models send these arguments, which are not validated: an id may be a number, and a timeout may be null.

    async def view_task(self, task_id: str) -> ToolResponse:  # noqa: D102 its docstring is set below
        return self._reported(await super().view_task(str(task_id)))

    async def wait_task(self, task_id: str, timeout: float = 10) -> ToolResponse:  # noqa: D102 as above
        return self._reported(await super().wait_task(str(task_id), math.inf if timeout is None else timeout))

    async def cancel_task(self, task_id: str) -> ToolResponse:  # noqa: D102 as above
        return self._reported(await super().cancel_task(str(task_id)))


def _replace(live: Any, entries: Mapping[str, Any]) -> None:
    """Make a live dictionary have these entries only, in their order."""
    wanted = dict(entries)
    kept = [key for key in live if key in wanted]
    if kept != list(wanted)[: len(kept)]:
        kept = []
    for key in [key for key in live if key not in kept]:
        del live[key]
    live.update(wanted)


def _take_texts(names: Iterable[str]) -> None:
    """Take the descriptions of methods that models read from AgentScope."""
    for name in names:
        method = getattr(Toolkit, name)
        method.__doc__ = getattr(_original.Original, name, getattr(toolcrib.Toolkit, name)).__doc__


_take_texts(["reset_equipped_tools", "view_task", "wait_task", "cancel_task"])
