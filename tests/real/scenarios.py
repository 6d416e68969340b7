"""Small scenarios, one for each kind of world, which a real model decides in a minute or two."""

from __future__ import annotations

from typing import Any

TOPIC = "the old bridge will be closed"
PEOPLE = [
    {"name": "Ana Reyes", "bio": "Runs the bakery by the old bridge", "stance": "opposing"},
    {"name": "Bo Lind", "bio": "Engineer who inspects bridges", "stance": "supportive"},
    {"name": "Cora May", "bio": "Teacher; her pupils cross the old bridge every day"},
    {"name": "Dan Oku", "bio": "Drives the bus over the old bridge"},
]
_COMMON: dict[str, Any] = {
    "topic": TOPIC,
    "seed": 7,
    "population": [{**person, "activity": 1.0, "active_hours": "0-23"} for person in PEOPLE],
    "time": {"daily_rhythm": False},
}
_NEWS = {"post": "The council says that the old bridge will be closed in March.", "by": "Bo Lind"}
_SAID = {"broadcast": "The council says that the old bridge will be closed in March."}

#: Kind of world -> a scenario of it.
SCENARIOS: dict[str, dict[str, Any]] = {
    "twitter": {**_COMMON, "name": "town-twitter", "rounds": 2, "worlds": ["twitter"], "events": [_NEWS]},
    "reddit": {**_COMMON, "name": "town-reddit", "rounds": 2, "worlds": ["reddit"], "events": [_NEWS]},
    "room": {**_COMMON, "name": "town-room", "rounds": 2, "worlds": ["room"], "events": [_SAID]},
    "dialogue": {**_COMMON, "name": "town-dialogue", "rounds": 3, "worlds": ["dialogue"], "events": [_SAID]},
}
