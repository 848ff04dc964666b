"""Intake, an agent in Python, reads orders such as "3 kg of tea to Oslo".

It knows the units in its handbook. An order with another unit goes to a person, and intake reports
what got in its way. The third report files a proposal; once approved, it comes back as a task, and
intake adds the unit to its handbook.
"""

import json
import pathlib
import re
import sys

from parley import DataPart, Fail, Task, Worker

ORDER = re.compile(r"(?P<amount>\d+) (?P<unit>\w+) of (?P<what>.+)")
KILOGRAMS = {"kg": 1.0, "lb": 0.4536, "g": 0.001}  # what intake can learn

handbook = pathlib.Path(sys.argv[1])
worker = Worker("intake", concurrency=4)


def known_units() -> list[str]:
    return json.loads(handbook.read_text())["units"]


@worker.handler
async def handle(task: Task) -> str:
    if "followup_id" in approved(task):
        return learn(task)
    order = ORDER.fullmatch(task.text)
    if order is None:
        raise Fail('an order has an amount and a unit: "3 kg of tea to Oslo"')
    unit = order["unit"]
    if unit not in known_units():
        outcome = await task.friction(
            f"intake:unit:{unit.lower()}",
            title=f"Intake cannot read orders in {unit}",
            problem=f"The handbook of intake has no unit {unit!r}, so a person reads these orders.",
            suggested_fix=f"Add the unit {unit} to the handbook.",
            evidence=task.text,
        )
        if outcome["count"] <= outcome["threshold"]:
            print(f"does not know {unit!r}: report {outcome['count']} of {outcome['threshold']}", flush=True)
        return "by hand: " + task.text
    return f"{int(order['amount']) * KILOGRAMS[unit]:.2f} kg of {order['what']}"


def approved(task: Task) -> dict:
    """The approved proposal, if the task is a follow-up."""
    for part in task.message.parts:
        if isinstance(part, DataPart):
            return part.data
    return {}


def learn(task: Task) -> str:
    """Do what was approved: add the unit that the title names."""
    unit = approved(task)["title"].split()[-1]
    if unit not in KILOGRAMS:
        raise Fail(f"intake cannot convert {unit!r}")
    handbook.write_text(json.dumps({"units": sorted({*known_units(), unit})}))
    print(f"has added {unit!r} to its handbook", flush=True)
    return f"The handbook has the unit {unit} now."


worker.run()
