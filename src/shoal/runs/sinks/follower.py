"""Graph memory of a run: follows its streams into a graph, which is asked at any time.

The graph is derived from the streams and can be deleted: the next question makes it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from shoal.runs.directory import RunDirectory
from shoal.runs.store import stream_path
from shoal.runs.stream import ActionStream, RoundEnd
from shoal.scenario import sample
from shoal.sinks import GraphAnswer, GraphStore, Narration, Narrator, Position, Sink, SinkBatch, answer_question
from shoal.types import Event, Notice
from shoal.worlds import NameIndex

GRAPH = "graph.db"
#: Rounds are written together until they have this many episodes.
BATCH_EPISODES = 2_000
#: The line that ends a round is shorter than this.
_MARKER_BYTES = 4_096


class SinkFollower:
    """Copies what a run commits into a sink, from where the sink is."""

    def __init__(
        self,
        run: RunDirectory,
        sink: Sink,
        batch_episodes: int = BATCH_EPISODES,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self.run = run
        #: Hears how many episodes each batch had that was taken over.
        self._on_batch = on_batch
        self._batch_episodes = batch_episodes
        self.sink = sink
        scenario = run.scenario_versions.latest
        claims = {claim.id: claim.text for claim in scenario.claims}
        self._narrators = {world: Narrator(world, scenario.topic, claims, self._find_person) for world in run.worlds}

    def catch_up(self) -> int:
        """Copy all whole rounds that the sink has not got yet, and return how many episodes they had."""
        if any(not self._continues(world, self.sink.position(world)) for world in self._narrators):
            self.sink.clear()
        copied, waiting = 0, list(self._narrators)
        while waiting:
            world = waiting[0]
            for batch in self.read_batches(world, self.sink.position(world)):
                if not self.sink.write(batch):
                    # The sink is elsewhere than it said: read on from there.
                    break
                copied += len(batch.episodes)
                if self._on_batch is not None:
                    self._on_batch(len(batch.episodes))
            else:
                waiting.pop(0)
        return copied

    @cached_property
    def _names(self) -> NameIndex:
        return NameIndex(sample(self.run.scenario_versions.latest).names)

    def _find_person(self, name: str) -> int | None:
        return self._names.find(name)

    def _continues(self, world: str, position: Position) -> bool:
        """Return whether the stream is the one that was followed up to the position, and not one made anew."""
        if not position.bytes:
            return True
        try:
            with stream_path(self.run.path, world).open("rb") as file:
                file.seek(max(position.bytes - _MARKER_BYTES, 0))
                before = file.read(min(position.bytes, _MARKER_BYTES))
        except FileNotFoundError:
            return False
        return (
            before.endswith(b"\n")
            and f'"digest":"{position.digest}"'.encode() in before[before[:-1].rfind(b"\n") + 1 :]
        )

    def read_batches(self, world: str, position: Position) -> Iterator[SinkBatch]:
        """Read whole rounds; one that is not whole may be written again, and is left for later."""
        stream, narrator = ActionStream(stream_path(self.run.path, world), position.bytes), self._narrators[world]
        whole: list[Narration] = []
        current: list[Narration] = []
        begin = end = position
        for line in stream.read():
            episode = None
            if isinstance(line, Event):
                episode = narrator.tell(line)
            elif isinstance(line, Notice):
                episode = narrator.tell_notice(line, f"{world}-{line.round}-notice{stream.offset}")
            elif isinstance(line, RoundEnd):
                whole += current
                current, end = [], Position(stream.offset, line.digest)
                if len(whole) >= self._batch_episodes:
                    yield SinkBatch(world, begin, end, whole)
                    whole, begin = [], end
            if episode is not None:
                current.append(episode)
        if end != begin:
            yield SinkBatch(world, begin, end, whole)


@contextmanager
def open_graph(run: RunDirectory) -> Iterator[GraphStore]:
    """Open the graph of a run with everything in it that is committed."""
    store = GraphStore(run.file(GRAPH))
    try:
        SinkFollower(run, store).catch_up()
        yield store
    finally:
        store.close()


def answer_from_graph(run: RunDirectory, question: str, limit: int = 8) -> GraphAnswer:
    """Answer a question from the graph of a run."""
    with open_graph(run) as graph:
        return answer_question(graph, question, limit)
