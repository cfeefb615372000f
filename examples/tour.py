"""A tour of toolcrib: an agent in a workshop, with a scripted model. It needs no API key and no network.

Run it with `make demo`. Read it from the top: the tools, the agent loop, the script of the model.
"""

import asyncio
import json
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from functools import partial
from typing import Any, Literal, TypeAlias

from toolcrib import (
    AgentDefinition,
    AgentInput,
    AgentOutput,
    Session,
    Store,
    ToolCall,
    ToolContext,
    Toolkit,
    ToolResponse,
    ToolUseBlock,
    mcp,
    tools,
)
from toolcrib.agent import ModelReply
from toolcrib.middleware import NextHandler

PAUSE = 0.05  # seconds between the chunks of the streaming tools, so that they are visible on the screen

# ---------------------------------------------------------------------------------------------------------------------
# The tools: plain Python functions. Two of them take a context, which the model does not see.


class Part(Enum):
    """A part that the workshop can buy."""

    HINGE = "hinge"
    SCREW = "screw"


@dataclass
class Workshop:
    """What the tools of one person work with: the dependencies of a session."""

    owner: str
    order_book: dict[date, Part] = field(default_factory=dict)


PRICES = {Part.HINGE: 2.5, Part.SCREW: 0.05}
SHELVES = {"A": 120, "B": 80, "C": 40}


def convert(value: float, unit: Literal["mm", "inch"]) -> str:
    """Convert a length to the other unit.

    Args:
        value: The length.
        unit: The unit that the length is in.
    """
    return f"{value / 25.4:.2f} inch" if unit == "mm" else f"{value * 25.4:.1f} mm"


async def price(part: Part, pieces: int = 1) -> dict[str, Any]:
    """Look up what a part costs.

    Args:
        part: The part.
        pieces: How many of them.
    """
    await asyncio.sleep(0)  # a real tool would wait for a database here
    return {"part": part.value, "total": PRICES[part] * pieces}


def stock() -> Iterator[str]:
    """Count the screws, shelf by shelf."""
    total = 0
    for shelf, screws in SHELVES.items():
        time.sleep(PAUSE)  # blocks its own thread, not the event loop
        total += screws
        yield f"shelf {shelf}: {total} so far"


async def drill(context: ToolContext[Workshop], holes: int, depth_mm: float = 10.0) -> str:
    """Drill holes, one after the other.

    Args:
        context: The context of the call.
        holes: How many.
        depth_mm: How deep.
    """
    try:
        for hole in range(1, holes + 1):
            context.progress(hole, holes, f"hole {hole} of {holes}, {depth_mm:g} mm deep")
            await asyncio.sleep(PAUSE)
    finally:
        print("    (the drill stops turning)", flush=True)
    return f"drilled {holes} holes for {context.deps.owner}"


def saw(blade: str, length_mm: float) -> str:
    """Saw a board to length.

    Args:
        blade: The blade to use.
        length_mm: The length to cut.
    """
    return f"cut at {length_mm:g} mm with the {blade} blade"


async def glue(boards: int) -> str:
    """Glue boards together and let the glue set.

    Args:
        boards: How many.
    """
    await asyncio.sleep(2 * PAUSE)
    return f"{boards} boards, and the glue has set"


def order(context: ToolContext[Workshop], part: Part, day: date) -> str:
    """Order a part from the supplier.

    Args:
        context: The context of the call.
        part: The part.
        day: The day of delivery.
    """
    if day.weekday() > 4:
        raise ConnectionError(f"the supplier does not answer on a {day:%A}, no {part.value} then")
    context.deps.order_book[day] = part
    return f"a {part.value} comes on {day:%A}"


# A sub-agent: a tool that has a prompt, tools and a model of its own.
ESTIMATOR = AgentDefinition(
    "estimator",
    "Estimates what a piece of furniture costs.",
    inputs={"furniture": AgentInput("string", "The piece of furniture.")},
    system_prompt="You estimate costs. Look up prices, then complete the task.",
    query="What do the parts of a ${furniture} cost?",
    tools=["price"],
    output=AgentOutput("cost", "The cost of all parts.", {"type": "number"}),
)


async def estimate(messages: list[dict[str, Any]], schemas: list[dict[str, Any]]) -> ModelReply:
    """Stand in for the model of the sub-agent: look up two prices at once, and add them."""
    totals = [json.loads(message["content"])["total"] for message in messages if message["role"] == "tool"]
    if totals:
        return ModelReply(calls=[ToolCall("complete_task", {"cost": sum(totals)})])
    parts = [ToolCall("price", {"part": part, "pieces": pieces}) for part, pieces in (("hinge", 2), ("screw", 8))]
    return ModelReply(thoughts=["**Counting parts** A door has two hinges and eight screws."], calls=parts)


def equip(toolkit: Toolkit) -> None:
    """Register the tools: some are always active, the machines are in a group that is off."""
    toolkit.register_tool_function(convert)
    toolkit.register_tool_function(price)
    toolkit.register_tool_function(stock, chunks="replace")  # each report is the result so far
    toolkit.register_tool_function(order)
    toolkit.register_tool_function(glue, async_execution=True)
    toolkit.register_task_tools()
    toolkit.register_agent(ESTIMATOR, model=estimate)
    toolkit.register_tool_function(tools.execute_python_code)  # a native tool, in a process of its own

    toolkit.create_tool_group("machines", "Machines that need care.", notes="Wear goggles. One machine at a time.")
    toolkit.register_tool_function(drill, group_name="machines")
    toolkit.register_tool_function(partial(saw, "fine"), group_name="machines")
    toolkit.register_tool_function(toolkit.reset_equipped_tools)  # lets the model switch the groups


def lathe(turns: int, context: ToolContext) -> str:
    """Turn a table leg.

    Args:
        turns: How many turns.
        context: The context of the call.
    """
    for turn in range(turns):
        context.progress(turn + 1, turns)
        time.sleep(PAUSE)
    return f"a table leg after {turns} turns"


def serve_neighbour() -> None:
    """Be the neighbour's workshop: an MCP server over standard input and output."""
    neighbour = Toolkit()
    neighbour.register_tool_function(lathe)
    neighbour.serve_mcp("stdio", name="neighbour").run()


class Logbook:
    """Make a middleware that records each tool and the number of its responses."""

    def __init__(self) -> None:
        self.entries: Counter[str] = Counter()

    async def __call__(self, kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncIterator[ToolResponse]:
        """Forward the responses and count them."""
        async for response in next_handler(**kwargs):
            self.entries[kwargs["tool_call"]["name"]] += 1
            yield response


# ---------------------------------------------------------------------------------------------------------------------
# The agent: call the model, run its tool calls, return the results, until there are no more calls.


@dataclass
class Turn:
    """One turn of the model: a text and its tool calls."""

    text: str
    calls: list[ToolUseBlock] = field(default_factory=list)


async def agent(session: Session[Workshop], model: "ScriptedModel", screen: "Screen") -> None:
    """Run the loop, in a session: what the model switches on here is on for this conversation only."""
    results: list[str] = []
    while True:
        turn = model.reply(session.get_json_schemas(), results)
        screen.title(f"model: {turn.text}")
        if not turn.calls:
            return
        results = [await act(session, call, screen) for call in turn.calls]


async def act(session: Session[Workshop], call: ToolUseBlock, screen: "Screen") -> str:
    """Run one call, print its responses as they arrive, and return the text of the last one."""
    screen.call(call)
    response = None
    try:
        async for response in session.call_tool_function(call):
            screen.response(response)
    finally:  # also runs if the task is cancelled, after the interrupted response
        screen.outcome(response)
    return response.text if response else ""


# ---------------------------------------------------------------------------------------------------------------------
# The model: it follows a script and checks its input. A real model would be behind an API.


# For each turn: the text that the input must contain, the model's text, and its tool calls.
Script: TypeAlias = list[tuple[str, str, list[tuple[str, dict[str, Any]]]]]


class ScriptedModel:
    """Follows the script, and raises if its input is not the expected one."""

    def __init__(self, script: Script) -> None:
        self.script = iter(script)
        self.calls = 0

    def reply(self, schemas: list[dict[str, Any]], results: list[str]) -> Turn:
        """Take the schemas and the results of the last calls, and return the next turn."""
        expected, text, calls = next(self.script)
        if expected not in "\n".join(results):
            raise AssertionError(f"expected to read {expected!r}, but got {results}")
        task = re.search(r"Task ID: (\w+)", "\n".join(results))
        if task:
            calls = [(name, {**arguments, "task_id": task[1]}) for name, arguments in calls]
        return Turn(text.format(tools=len(schemas)), [self.use(name, arguments) for name, arguments in calls])

    def use(self, name: str, arguments: dict[str, Any]) -> ToolUseBlock:
        """Format a tool call as a model's API does."""
        self.calls += 1
        return {"type": "tool_use", "id": f"call-{self.calls}", "name": name, "input": arguments}


SCRIPT: Script = [
    (
        "",
        "I have {tools} tools. First the plan: how long is 2 inch, and what do 8 screws cost?",
        [("convert", {"value": "2", "unit": "inch"}), ("price", {"part": "screw", "pieces": "8"})],
    ),
    ("50.8 mm", "Are there enough screws on the shelves?", [("stock", {})]),
    ("240 so far", "Plenty. Let me drill.", [("drill", {"holes": 2})]),
    (
        "inactive group 'machines'",
        "The machines are locked; I open the locker.",
        [("reset_equipped_tools", {"machines": True})],
    ),
    (
        "Wear goggles",
        "Now I have {tools} tools. Goggles on.",
        [("drill", {"holes": 2}), ("saw", {"length_mm": 50.8})],
    ),
    ("fine blade", "One more hinge is needed.", [("order", {"part": "hinge", "day": "2026-11-15"})]),
    (
        "does not answer on a Sunday",
        "Then on Monday.",
        [("order", {"part": "hinge", "day": "Monday"}), ("order", {"part": "hinge", "day": "2026-11-16"})],
    ),
    (
        "a hinge comes on Monday",
        "Good. Let me shorten the board.",
        [("saw", {"length_mm": "a bit", "blade": "coarse"})],
    ),
    ("length_mm", "A number, of course, and the blade is not mine to choose.", [("saw", {"length_mm": 49})]),
    ("49 mm", "Glue takes its time; I sweep the floor meanwhile.", [("glue", {"boards": 2})]),
    ("executing asynchronously", "The floor is clean. Has it set?", [("wait_task", {})]),
    ("the glue has set", "The board is ready. What would a door cost?", [("estimator", {"furniture": "door"})]),
    ("5.4", "Let me check that.", [("execute_python_code", {"code": "print(2 * 2.5 + 8 * 0.05)"})]),
    ("<stdout>5.4", "That is a bargain.", []),
]

BORROWING: Script = [
    ("", "The neighbour has a lathe; now I have {tools} tools.", [("neighbour__lathe", {"turns": 2})]),
    ("a table leg", "The table has its last leg.", []),
]

PAPERWORK: Script = [
    (
        "",
        "I write the bill.",
        [("create_artifact", {"id": "bill", "title": "The bill", "content": "2 hinges: 5.00\n8 screws: 0.40\n"})],
    ),
    (
        "Created artifact 'bill'",
        "The screws were a gift.",
        [("update_artifact", {"id": "bill", "old_str": "8 srews: 0.40", "new_str": "8 screws: a gift"})],
    ),
    ("(v2)", "My typo did no harm.", []),
]

LONG_JOB: Script = [("", "And now a hundred holes, just because I can.", [("drill", {"holes": 100})])]


# ---------------------------------------------------------------------------------------------------------------------
# The tour itself.


async def tour() -> None:
    """Describe the tools to the model, run the agent, interrupt it, and print a summary."""
    toolkit = Toolkit()
    equip(toolkit)
    logbook = Logbook()
    toolkit.register_middleware(logbook)
    screen = Screen()

    screen.title("The tools, as the model sees them:")
    for schema in toolkit.get_json_schemas():
        screen.line(f"  {describe(schema['function'])}")

    session = toolkit.session(caller="ada", deps=Workshop("Ada"))
    await agent(session, ScriptedModel(SCRIPT), screen)

    screen.title("The neighbour's workshop is an MCP server, in a process of its own:")
    async with mcp.connect([sys.executable, __file__, "--serve"], name="neighbour") as neighbour:
        await toolkit.register_mcp_client(neighbour, namespace=True)
        await agent(session, ScriptedModel(BORROWING), screen)
        await toolkit.remove_mcp_clients("neighbour")

    screen.title("And this workshop is one too, for a visitor with a token:")
    async with (
        toolkit.serve_mcp("http") as server,
        mcp.connect(server.url, token=server.token, name="workshop") as client,
    ):
        visitor = Toolkit()
        await visitor.register_mcp_client(client)
        screen.line(f"  The visitor sees {len(visitor.tools)} tools over HTTP")
        response = await visitor.call("convert", value=1, unit="inch")
        screen.line(f"  1 inch is {response.text} there, too")

    screen.title("The bill is an artifact, a text with versions in a store:")
    async with Store.open("sqlite::memory:") as store:  # "sqlite:workshop.db" would keep it
        names = tools.register(toolkit, "artifacts", store=store)
        await agent(session, ScriptedModel(PAPERWORK), screen)
        bill = json.loads((await session.call("read_artifact", id="bill")).text)
        screen.line(f"  Version {bill['version']}: {bill['content']!r}")
        for name in names:
            toolkit.remove_tool_function(name)

    job = asyncio.create_task(agent(session, ScriptedModel(LONG_JOB), screen))
    await screen.shows("hole 2 of 100")
    job.cancel()
    try:
        await job
    except asyncio.CancelledError:
        screen.line("  The agent's task is cancelled; the drill was stopped first.")

    screen.title("Summary:")
    screen.line(f"  {len(toolkit.tools)} tools, {screen.outcomes.total()} calls")
    other = toolkit.session(caller="bob", deps=Workshop("Bob"))
    screen.line(f"  Ada's session has {len(session.tools)} tools switched on, Bob's has {len(other.tools)}")
    screen.line(f"  Ada's order book: {[f'{part.value} on {day}' for day, part in session.deps.order_book.items()]}")
    for outcome, count in screen.outcomes.most_common():
        screen.line(f"  {count:>2} {outcome}")
    tool, responses = logbook.entries.most_common(1)[0]
    screen.line(f"  The logbook says that the {tool} spoke most: {responses} times")


def describe(function: dict[str, Any]) -> str:
    """Format a tool's schema as one line; a question mark marks an optional parameter."""
    parameters = function["parameters"]
    required = parameters.get("required", [])
    names = [name if name in required else f"{name}?" for name in parameters["properties"]]
    return f"{function['name']}({', '.join(names)}): {function['description'].splitlines()[0]}"


class Screen:
    """Prints the events, in colour on a terminal, and counts the outcomes of calls."""

    def __init__(self) -> None:
        self.colour = sys.stdout.isatty()
        self.outcomes: Counter[str] = Counter()
        self.awaited = ""
        self.seen = asyncio.Event()
        self.has_parts = False

    def line(self, text: str, colour: str = "0") -> None:
        """Print a line at once."""
        print(f"\x1b[{colour}m{text}\x1b[0m" if self.colour else text, flush=True)
        if self.awaited and self.awaited in text:
            self.seen.set()

    def title(self, text: str) -> None:
        """Print a heading."""
        self.line(f"\n{text}", colour="1")

    def call(self, call: ToolUseBlock) -> None:
        """Print a tool call."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in call["input"].items())
        self.line(f"  {call['name']}({arguments})", colour="36")

    def response(self, response: ToolResponse) -> None:
        """Print a response; errors are red."""
        # The whole result is on the screen already if it came in parts. An interrupted one ends with a note.
        is_whole = self.has_parts and response.is_last and response.ok
        self.has_parts = not response.is_last and (self.has_parts or response.mode != "progress")
        lines = [] if is_whole else response.text.splitlines()
        for line in lines[-1:] if response.is_interrupted else lines:
            self.line(f"    {line}", colour="0" if response.ok else "31")

    def outcome(self, response: ToolResponse | None) -> None:
        """Count the outcome of a call."""
        self.outcomes["no response" if response is None else response.code or "ok"] += 1

    async def shows(self, text: str) -> None:
        """Wait until a line with that text is printed."""
        self.awaited = text
        await self.seen.wait()


if __name__ == "__main__":
    # The tracebacks of failing tools go to this logger; the tour shows what the model reads.
    logging.getLogger("toolcrib").addHandler(logging.NullHandler())
    if "--serve" in sys.argv:
        serve_neighbour()
    else:
        asyncio.run(tour())
