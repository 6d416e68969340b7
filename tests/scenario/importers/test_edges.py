"""Follow graphs from files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.loading import validate
from shoal.scenario.sampling.follow_graph import draw_follow_graph
from shoal.scenario.sampling.links import read_links
from shoal.scenario.sampling.sampler import sample
from shoal.scenario.scenario import Scenario
from tests.scenario.importers.people_files import write_file

PEOPLE = [{"name": "Ada", "username": "ada_l"}, {"name": "Ben"}, {"name": "7"}, {"count": 5}]
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="name" attr.type="string"/>
  <key id="d1" for="edge" attr.name="weight" attr.type="double"/>
  <graph edgedefault="{default}">
    <node id="n0"><data key="d0">Ada</data></node>
    <node id="n1"><data key="d0"> Ben </data></node>
    <node id="4"/>
    <edge source="n0" target="n1"><data key="d1">0.5</data></edge>
    <edge source="4" target="n0" {said}/>
  </graph>
</graphml>
"""


def scenario(path: Path, **more: Any) -> Scenario:
    return validate({"population": PEOPLE, "follows": {"file": str(path), **more}})


def edges(path: Path, **more: Any) -> list[tuple[int, int]]:
    made = scenario(path, **more)
    graph = draw_follow_graph(made, sample(made))
    return [(n, to) for n in range(8) for to in graph.targets[graph.starts[n] : graph.starts[n + 1]].tolist()]


def find_problems(path: Path, **more: Any) -> list[str]:
    with pytest.raises(ScenarioInvalid) as caught:
        scenario(path, **more)
    return [problem.removeprefix("scenario: follows.file: ") for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.csv", "from,to\nAda,Ben\nBen,3\n"),
        ("e.csv", "Target;weight;SOURCE\nBen;1;ada_l\n3;1;Ben\n"),
        ("e.csv", "Ada,Ben\nBen,3\n"),
        ("e.csv", "0,1,0.5\n1,3,0.5\n"),
        ("e.tsv", "follower\tfollowee\n0\t1\n1\t3\n"),
        ("e.txt", "# a comment\n0 1\n1   3\n\n"),
        ("e.edges", "% a comment\n0\t1\n1\t3\n"),
        ("e.txt", "Ada,Ben\nBen,3\n"),
        ("e.jsonl", '{"from": "Ada", "to": 1}\n["Ben", 3]\n'),
        ("e.json", '[{"source": 0, "target": "Ben", "w": 1}, [1, 3]]'),
        ("e.csv", "\ufefffrom,to\r\nAda,Ben\r\nBen,3\r\n"),
    ],
)
def test_the_same_edges_come_out_of_every_format(tmp_path: Path, name: str, text: str) -> None:
    assert edges(write_file(tmp_path, name, text)) == [(0, 1), (1, 3)]


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write_file(tmp_path, "e.csv", "from,to,fan,star\n1,2,Ada,Ben\n")
    assert edges(path) == [(1, 2)]
    assert edges(path, columns={"from": "fan", "to": "star"}) == [(0, 1)]
    assert find_problems(path, columns={"from": "fan", "to": "stat"}) == [
        "e.csv: no column 'stat'; did you mean 'star'?"
    ]


def test_a_name_goes_before_a_number(tmp_path: Path) -> None:
    assert edges(write_file(tmp_path, "e.csv", "0,7\n")) == [(0, 2)]


def test_a_file_replaces_the_usual_graph_unless_both_are_wanted(tmp_path: Path) -> None:
    path = write_file(tmp_path, "e.csv", "0,1\n")
    assert edges(path, edges=[["Ben", "Ada"]]) == [(0, 1), (1, 0)]
    both = edges(path, graph="small-world", mean_degree=2)
    assert len(both) > 8
    assert (0, 1) in both


def test_unknown_people_are_refused_with_the_first_twenty_and_how_many_more(tmp_path: Path) -> None:
    rows = "".join(f"Ada,{name}\n" for name in ["Bem", "8", *["?"] * 28])
    problems = find_problems(write_file(tmp_path, "e.csv", rows))
    assert problems[0] == "e.csv:1: unknown person 'Bem'; did you mean 'Ben'?"
    assert problems[1] == "e.csv:2: unknown person '8'; expected a name, a username or a number, 0 to 7"
    assert problems[20:] == ["... and 10 more problems like these"]


def test_self_loops_and_repeated_edges_are_left_out_and_noted(tmp_path: Path) -> None:
    path = write_file(tmp_path, "e.csv", "from,to\nAda,Ben\nada_l,1\n0,0\nAda,0\n0,1\n")
    assert edges(path) == [(0, 1)]
    made = scenario(path)
    assert read_links(made.population, made.follows).notes == [
        "edges of people who follow themselves: 2, left out (e.csv:4, e.csv:5)",
        "edges that stand twice: 2, left out (e.csv:3, e.csv:6)",
    ]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("e.csv", "", "e.csv: nothing in it"),
        ("e.csv", "from,to\nAda\n", "e.csv:2: expected two people, found 'Ada'"),
        ("e.csv", "from,to\nAda,\n", "e.csv:2: expected a name or a number, found ''"),
        ("e.jsonl", '{"from": {"id": 1}, "to": 2}', "e.jsonl:1: expected a name or a number, found a mapping"),
        ("e.txt", "Ada\n", "e.txt:1: expected two people, found 'Ada'"),
        ("e.jsonl", '{"a": 1}\n', "e.jsonl:1: expected an object with `from` and `to`, found a mapping"),
        ("e.jsonl", "{\n", "e.jsonl:1: cannot be read as JSON"),
        ("e.json", "{}", "e.json: expected a list of edges, found an empty mapping"),
        ("e.gexf", "x", "expected a file that ends in .csv"),
        ("e.graphml", "<graphml><graph><edge source='a'/></graph></graphml>", "e.graphml:1: <edge> has no 'target'"),
        ("e.graphml", "<gexf/>", "e.graphml:1: expected <graphml>, found <gexf>"),
        ("e.graphml", "<graphml>\n<graph>", "e.graphml:2: cannot be read as GraphML"),
    ],
)
def test_a_file_that_cannot_be_read_is_answered(tmp_path: Path, name: str, text: str, problem: str) -> None:
    [found] = find_problems(write_file(tmp_path, name, text))
    assert problem in found


def test_people_of_files_can_be_followed_and_follow(tmp_path: Path) -> None:
    people = write_file(tmp_path, "p.csv", "name,follows\nEve,Ada;1\nFay,\n")
    made = validate({"population": [{"name": "Ada"}, {"file": str(people)}], "follows": "none"})
    graph = draw_follow_graph(made, sample(made))
    assert graph.targets[graph.starts[1] : graph.starts[2]].tolist() == [0, 2]
    write_file(tmp_path, "p.csv", "name,follows\nEve,Ada;Fya\nFay,\n")
    with pytest.raises(ScenarioInvalid, match=r"population.1.file: p.csv:2: unknown person 'Fya'; did you mean 'Fay'"):
        validate({"population": [{"name": "Ada"}, {"file": str(people)}]})


def test_ends_can_be_found_by_a_trait(tmp_path: Path) -> None:
    people = str(write_file(tmp_path, "p.csv", "name,uid\nEve,1\nFay,0\nGus,x99\n"))
    path = write_file(tmp_path, "e.csv", "0,1\nx99,0\n77,1\n")
    population = [{"name": "Ada", "traits": {"uid": 77}}, {"file": people}]
    made = validate({"population": population, "follows": {"file": str(path), "by": "uid"}})
    found = read_links(made.population, made.follows)
    assert sorted(zip(found.sources.tolist(), found.targets.tolist(), strict=True)) == [(0, 1), (2, 1), (3, 2)]
    write_file(tmp_path, "e.csv", "0,1\nx98,0\n")
    with pytest.raises(ScenarioInvalid, match=r"e\.csv:2: nobody has 'x98' as their 'uid'; did you mean 'x99'"):
        validate({"population": population, "follows": {"file": str(path), "by": "uid"}})
    with pytest.raises(ScenarioInvalid, match=r"follows\.by: nobody has a trait 'uuid'; did you mean 'uid'"):
        validate({"population": population, "follows": {"file": str(path), "by": "uuid"}})


# GraphML


@pytest.mark.parametrize(
    ("default", "said", "expected"),
    [
        ("directed", "", [(0, 1), (4, 0)]),
        ("undirected", "", [(0, 1), (0, 4), (1, 0), (4, 0)]),
        ("undirected", 'directed="true"', [(0, 1), (1, 0), (4, 0)]),
        ("directed", 'directed="false"', [(0, 1), (0, 4), (4, 0)]),
    ],
)
def test_graphml_goes_both_ways_where_it_has_no_direction(
    tmp_path: Path, default: str, said: str, expected: list[tuple[int, int]]
) -> None:
    path = write_file(tmp_path, "e.graphml", GRAPHML.format(default=default, said=said))
    assert edges(path) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused_before_it_can_do_harm(tmp_path: Path, encoding: str) -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    text = f'<?xml version="1.0"?>\n<!DOCTYPE g [<!ENTITY l0 "ha">{laughs}]>\n<graphml>&l11;</graphml>'
    began = time.process_time()
    [problem] = find_problems(write_file(tmp_path, "e.graphml", text.encode(encoding)))
    assert "a document type (<!DOCTYPE>) is not read" in problem
    assert time.process_time() - began < 1


def test_nodes_without_a_person_are_unknown_people(tmp_path: Path) -> None:
    text = GRAPHML.format(default="directed", said="").replace("Ada", "Eda")
    assert (
        find_problems(write_file(tmp_path, "e.graphml", text))[0]
        == "e.graphml:9: unknown person 'Eda'; did you mean 'Ada'?"
    )
