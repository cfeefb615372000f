"""The tour of examples/tour.py: it ends by itself, and says what it should."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

TOUR = Path(__file__).parent.parent / "examples" / "tour.py"

# The one thing that differs from run to run.
TASK = re.compile("[2-9A-HJ-NP-Za-km-z]{22}")

EXPECTED = """
The tools, as the model sees them:
  convert(value, unit): Convert a length to the other unit.
  price(part, pieces?): Look up what a part costs.
  stock(): Count the screws, shelf by shelf.
  order(part, day): Order a part from the supplier.
  glue(boards): Glue boards together and let the glue set.
  view_task(task_id): Fetch the result of a background task, if it has finished; a result can be fetched once.
  wait_task(task_id, timeout?): Wait until a background task has finished, and fetch its result.
  cancel_task(task_id): Cancel a background task. Its result is not kept.
  estimator(furniture): Estimates what a piece of furniture costs.
  execute_python_code(code, timeout?): Run Python code in a new interpreter, and get its return code, its output and \
its errors. Print what you want to see. It has no input.
  reset_equipped_tools(machines?): Choose the tool groups to work with from now on.

model: I have 11 tools. First the plan: how long is 2 inch, and what do 8 screws cost?
  convert(value='2', unit='inch')
    50.8 mm
  price(part='screw', pieces='8')
    {"part": "screw", "total": 0.4}

model: Are there enough screws on the shelves?
  stock()
    shelf A: 120 so far
    shelf B: 200 so far
    shelf C: 240 so far

model: Plenty. Let me drill.
  drill(holes=2)
    FunctionInactiveError: The function 'drill' is in the inactive group 'machines'. Activate the tool group by \
calling 'reset_equipped_tools' first to use this tool.

model: The machines are locked; I open the locker.
  reset_equipped_tools(machines=True)
    Now tool groups 'machines' are activated. You MUST follow these notes to use these tools:
    <notes>## About Tool Group 'machines'
    Wear goggles. One machine at a time.</notes>

model: Now I have 13 tools. Goggles on.
  drill(holes=2)
    hole 1 of 2, 10 mm deep
    hole 2 of 2, 10 mm deep
    (the drill stops turning)
    drilled 2 holes for Ada
  saw(length_mm=50.8)
    cut at 50.8 mm with the fine blade

model: One more hinge is needed.
  order(part='hinge', day='2026-11-15')
    ConnectionError: the supplier does not answer on a Sunday, no hinge then

model: Then on Monday.
  order(part='hinge', day='Monday')
    Error: Invalid arguments for tool 'order':
    - day: expected a date (YYYY-MM-DD), got "Monday" (a string)
  order(part='hinge', day='2026-11-16')
    a hinge comes on Monday

model: Good. Let me shorten the board.
  saw(length_mm='a bit', blade='coarse')
    Error: Invalid arguments for tool 'saw':
    - blade: unknown argument (expected one of: length_mm)
    - length_mm: expected a number, got "a bit" (a string)

model: A number, of course, and the blade is not mine to choose.
  saw(length_mm=49)
    cut at 49 mm with the fine blade

model: Glue takes its time; I sweep the floor meanwhile.
  glue(boards=2)
    <system-reminder>Tool 'glue' is executing asynchronously. Task ID: <task>. Use view_task('<task>') to check \
status, wait_task('<task>') to wait for completion, or cancel_task('<task>') to cancel the task.</system-reminder>

model: The floor is clean. Has it set?
  wait_task(task_id='<task>')
    2 boards, and the glue has set

model: The board is ready. What would a door cost?
  estimator(furniture='door')
    Running subagent 'estimator' with inputs: { furniture: door }
    🤖💭 Counting parts
    🤖🔧 price
    🤖🔧 price
    🤖✅ price
    🤖✅ price
    Subagent 'estimator' finished.
    Termination Reason: GOAL
    Result:
    5.4

model: Let me check that.
  execute_python_code(code='print(2 * 2.5 + 8 * 0.05)')
    <returncode>0</returncode><stdout>5.4
    </stdout><stderr></stderr>

model: That is a bargain.

The neighbour's workshop is an MCP server, in a process of its own:

model: The neighbour has a lathe; now I have 14 tools.
  neighbour__lathe(turns=2)
    1 of 2
    2 of 2
    a table leg after 2 turns

model: The table has its last leg.

And this workshop is one too, for a visitor with a token:
  The visitor sees 11 tools over HTTP
  1 inch is 25.4 mm there, too

The bill is an artifact, a text with versions in a store:

model: I write the bill.
  create_artifact(id='bill', title='The bill', content='2 hinges: 5.00\\n8 screws: 0.40\\n')
    {"message":"Created artifact 'bill'"}

model: The screws were a gift.
  update_artifact(id='bill', old_str='8 srews: 0.40', new_str='8 screws: a gift')
    {"message":"Successfully updated artifact 'bill' (v2)","version":2,"fuzzy_match":{"similarity":"92.3%",\
"expected":"8 srews: 0.40","matched":"8 screws: 0.40","note":"The text was found although it was not quoted exactly. \
Compare expected and matched."}}

model: My typo did no harm.
  Version 2: '2 hinges: 5.00\\n8 screws: a gift\\n'

model: And now a hundred holes, just because I can.
  drill(holes=100)
    hole 1 of 100, 10 mm deep
    hole 2 of 100, 10 mm deep
    (the drill stops turning)
    <system-info>The tool call has been interrupted by the user.</system-info>
  The agent's task is cancelled; the drill was stopped first.

Summary:
  13 tools, 20 calls
  Ada's session has 13 tools switched on, Bob's has 11
  Ada's order book: ['hinge on 2026-11-16']
  15 ok
   2 invalid_arguments
   1 inactive_group
   1 failed
   1 interrupted
  The logbook says that the drill spoke most: 7 times
"""


def test_the_tour_prints_its_expected_output() -> None:
    run = subprocess.run([sys.executable, str(TOUR)], capture_output=True, text=True, timeout=50)

    assert run.stderr == ""
    assert TASK.sub("<task>", run.stdout) == EXPECTED
    assert run.returncode == 0


def test_the_tour_is_coloured_in_a_terminal_and_ends_there_too() -> None:
    screen, terminal = pty.openpty()
    with subprocess.Popen([sys.executable, str(TOUR)], stdout=terminal, stderr=terminal, stdin=terminal) as tour:
        os.close(terminal)
        shown = b""
        while chunk := read(screen):
            shown += chunk
    os.close(screen)

    assert tour.returncode == 0
    assert b"\x1b[31m    ConnectionError: the supplier does not answer" in shown


def read(screen: int) -> bytes:
    """Read from a pseudo-terminal, whose end is an error on Linux and an empty read elsewhere."""
    try:
        return os.read(screen, 4096)
    except OSError:
        return b""
