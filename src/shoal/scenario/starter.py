"""The scenario that `shoal init` writes: short, commented, and worth watching."""

from __future__ import annotations

STARTER = """\
# A rumour about a bridge, and how it spreads. Run it:  shoal run scenario.yaml
name: rumour
topic: the old bridge          # what people talk about; opinions are for (1) or against (-1) it
rounds: 24                     # how often everybody gets a chance to act
time: {minutes_per_round: 60}  # a round is an hour; few people are up at night

# People are drawn from what is said here; whatever is left out is drawn from sensible defaults.
# Other fields of a group: gender, country, profession, interests, active_hours, traits.
population:
  - {count: 100, group: residents, age: {normal: [45, 15], min: 18}}
  - {name: Vera Lund, profession: engineer, stance: supportive, activity: 0.9}  # and some can be written by hand

follows: scale-free            # or small-world, homophilous, none; or {graph: scale-free, mean_degree: 12}
worlds: [twitter, reddit]      # both at once, with the same people

# What is made to happen, and when. Round 0 is before the first round.
events:
  - {post: "They say the old bridge will be closed for good!", by: most_followed, round: 0}
  - {post: "I measured it myself: the old bridge is safe.", by: Vera Lund, round: 8}
"""
