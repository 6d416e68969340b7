"""Talks to a server: every route as a method, with typed answers."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from pydantic import BaseModel

from shoal.errors import ServerRefused
from shoal.server.messages.commands import CommandAnswer, EnvironmentAnswer
from shoal.server.messages.lifecycle import HistoryInfo, PrepareAnswer, SimulationInfo, StartAnswer
from shoal.server.messages.observation import (
    ActionInfo,
    ActionsAnswer,
    AgentInfo,
    AgentsAnswer,
    CommentsAnswer,
    HistoryRow,
    InterviewHistoryAnswer,
    PostsAnswer,
    ProfilesAnswer,
    RunDetail,
    RunStatus,
    TimelineAnswer,
)
from shoal.server.messages.seats import SeatInfo, SeatTurnInfo, TurnAnswerResult

A = TypeVar("A", bound=BaseModel)

_PREFIX = "/api/simulation"
_TIMEOUT_SECONDS = 300.0
#: A stream says at least this often that it is still there.
_STREAM_TIMEOUT_SECONDS = 45.0
_FIRST_RECONNECT_SECONDS, _LONGEST_RECONNECT_SECONDS = 0.05, 0.5
#: A server that does not come back within this time is given up.
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """Something that happened in a run: `kind` is `action`, `marker`, `state` or `restarted`."""

    kind: str
    data: dict[str, Any]
    #: Give it to `events` to go on from here.
    id: str

    @property
    def action(self) -> ActionInfo:
        """The action, where this is one."""
        return ActionInfo.model_validate(self.data)


class Client:
    """A client of `shoal serve`.

    Its connection is kept between calls; use one client in one thread. `ServerRefused` carries the status and the
    server's words.
    """

    def __init__(self, url: str = "http://127.0.0.1:5001", token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServerRefused(0, f"{url!r} is no address of a server; it looks like http://127.0.0.1:5001")
        self.url = url.rstrip("/")
        self._is_https = parts.scheme == "https"
        self._address = parts.hostname, parts.port
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Lifecycle

    def create(
        self,
        scenario: Mapping[str, Any] | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        reddit_profiles: Sequence[Mapping[str, Any]] | None = None,
        twitter_profiles: str | None = None,
    ) -> SimulationInfo:
        """Make a simulation of a scenario in plain values, or of a MiroFish config and its profiles."""
        parts = {"scenario": scenario, "config": config, "reddit_profiles": reddit_profiles}
        body = {**parts, "twitter_profiles": twitter_profiles}
        return self._post(SimulationInfo, "create", {name: part for name, part in body.items() if part is not None})

    def create_from_documents(
        self,
        requirement: str,
        documents: Mapping[str, str] = MappingProxyType({}),
        *,
        marginals: Mapping[str, str] = MappingProxyType({}),
        **settings: Any,
    ) -> SimulationInfo:
        """Make a simulation that is to be prepared from a requirement and documents, each a name and its text.

        `settings` are people, rounds, worlds, seed, topic, model and max_entities.
        """
        texts = {"documents": documents, "marginals": marginals}
        uploads = {
            part: [{"name": name, "text": text} for name, text in named.items()] for part, named in texts.items()
        }
        return self._post(SimulationInfo, "create", {"requirement": requirement, **uploads, **settings})

    def prepare(self, simulation: str) -> PrepareAnswer:
        """Let the server prepare a simulation, or go on with it."""
        return self._post(PrepareAnswer, "prepare", {"simulation_id": simulation})

    def preparation(self, simulation: str) -> PrepareAnswer:
        """Return how far the preparation of a simulation is; its `status` is `ready` at the end."""
        return self._post(PrepareAnswer, "prepare/status", {"simulation_id": simulation})

    def start(self, simulation: str, *, max_rounds: int | None = None, force: bool = False) -> StartAnswer:
        """Start or continue a simulation; with `force`, start over and archive what was written."""
        return self._post(StartAnswer, "start", {"simulation_id": simulation, "max_rounds": max_rounds, "force": force})

    def stop(self, simulation: str) -> RunStatus:
        return self._post(RunStatus, "stop", {"simulation_id": simulation})

    def list_simulations(self, limit: int = 100, offset: int = 0) -> list[SimulationInfo]:
        found = self._request("GET", "list", query={"limit": limit, "offset": offset})["data"]
        return [SimulationInfo.model_validate(each) for each in found]

    def history(self, limit: int = 20, offset: int = 0) -> list[HistoryInfo]:
        found = self._request("GET", "history", query={"limit": limit, "offset": offset})["data"]
        return [HistoryInfo.model_validate(each) for each in found]

    def get(self, simulation: str) -> SimulationInfo:
        return self._get(SimulationInfo, simulation)

    def config(self, simulation: str) -> dict[str, Any]:
        """Return the frozen input of a simulation."""
        found: dict[str, Any] = self._request("GET", f"{quote(simulation, safe='')}/config")["data"]
        return found

    def profiles(self, simulation: str, limit: int = 1_000, offset: int = 0) -> ProfilesAnswer:
        return self._get(ProfilesAnswer, simulation, "profiles", limit=limit, offset=offset)

    # Observation

    def status(self, simulation: str) -> RunStatus:
        return self._get(RunStatus, simulation, "run-status")

    def detail(self, simulation: str, limit: int = 500, cursor: str | None = None) -> RunDetail:
        return self._get(RunDetail, simulation, "run-status/detail", limit=limit, cursor=cursor)

    def actions(  # each is a parameter of the query
        self,
        simulation: str,
        *,
        world: str | None = None,
        agent: int | None = None,
        round: int | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ActionsAnswer:
        """Return a page of actions, newest first; `cursor` is `next_cursor` of the page before."""
        wanted = {"platform": world, "agent_id": agent, "round_num": round, "limit": limit, "cursor": cursor}
        return self._get(ActionsAnswer, simulation, "actions", **wanted)

    def all_actions(self, simulation: str, **wanted: Any) -> Iterator[ActionInfo]:
        """Iterate over all actions, newest first, page by page."""
        cursor = None
        while True:
            page = self.actions(simulation, limit=1_000, cursor=cursor, **wanted)
            yield from page.actions
            cursor = page.next_cursor
            if cursor is None:
                return

    def timeline(self, simulation: str, start: int = 0, end: int | None = None) -> TimelineAnswer:
        return self._get(TimelineAnswer, simulation, "timeline", start_round=start, end_round=end)

    def agent_stats(self, simulation: str) -> list[AgentInfo]:
        return self._get(AgentsAnswer, simulation, "agent-stats").stats

    def posts(self, simulation: str, world: str = "reddit", limit: int = 50, offset: int = 0) -> PostsAnswer:
        return self._get(PostsAnswer, simulation, "posts", platform=world, limit=limit, offset=offset)

    def comments(
        self, simulation: str, world: str = "reddit", post: int | None = None, limit: int = 50
    ) -> CommentsAnswer:
        return self._get(CommentsAnswer, simulation, "comments", platform=world, post_id=post, limit=limit)

    def events(
        self, simulation: str, *, since: int = 0, after: str = "", until_end: bool = True
    ) -> Iterator[ServerEvent]:
        """Iterate over what happens in a run, from a round on or after an event. Lost connections are taken up again.

        With `until_end` it ends when the run has ended or stopped.
        """
        pause, lost_at = _FIRST_RECONNECT_SECONDS, None
        while True:
            try:
                for event in self._read_events(simulation, since, after, until_end):
                    after, pause, lost_at = event.id, _FIRST_RECONNECT_SECONDS, None
                    yield event
                if until_end:
                    return
            except (OSError, http.client.HTTPException) as error:
                lost_at = lost_at or time.monotonic()
                if time.monotonic() - lost_at > _PATIENCE_SECONDS:
                    raise ServerRefused(0, f"{self.url} does not answer any more: {error}") from error
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_RECONNECT_SECONDS)

    def _read_events(self, simulation: str, since: int, after: str, until_end: bool) -> Iterator[ServerEvent]:
        with closing(self._connect(_STREAM_TIMEOUT_SECONDS)) as connection:
            query = urlencode({"since": since, "until_end": str(until_end).lower()})
            headers = {**self._headers, **({"Last-Event-ID": after} if after else {})}
            connection.request("GET", f"{_PREFIX}/{quote(simulation, safe='')}/events?{query}", headers=headers)
            with connection.getresponse() as response:
                if response.status != 200:
                    raise _parse_refusal(response.status, response.read())
                fields: dict[str, str] = {}
                has_ended = False
                for line in response:
                    text = line.decode().rstrip("\r\n")
                    if text:
                        name, _, value = text.partition(": ")
                        fields[name] = value
                    elif "data" in fields:
                        yield ServerEvent(fields["event"], json.loads(fields["data"]), fields["id"])
                        fields = {}
                    has_ended = has_ended or text == ": end"
                if until_end and not has_ended:
                    raise http.client.RemoteDisconnected("the stream broke off")

    # Commands

    def interview(  # noqa: PLR0913  # each is a field of the request
        self,
        simulation: str,
        agent: int,
        prompt: str,
        *,
        world: str | None = None,
        model: str | None = None,
        context: str = "",
        timeout: float = 60.0,
    ) -> CommandAnswer:
        """Ask an agent; `result` has its answer, by world where none is given."""
        body = {"simulation_id": simulation, "agent_id": agent, "prompt": prompt, "platform": world, "model": model}
        return self._post(CommandAnswer, "interview", {**body, "context": context, "timeout": timeout})

    def interview_batch(
        self,
        simulation: str,
        interviews: Sequence[Mapping[str, Any]],
        *,
        model: str | None = None,
        timeout: float = 120.0,
    ) -> CommandAnswer:
        """Ask several agents, each with `agent_id` and `prompt`; `result["results"]` is keyed by world and agent."""
        body = {"simulation_id": simulation, "interviews": [dict(each) for each in interviews], "model": model}
        return self._post(CommandAnswer, "interview/batch", {**body, "timeout": timeout})

    def interview_all(
        self, simulation: str, prompt: str, *, model: str | None = None, timeout: float = 180.0
    ) -> CommandAnswer:
        body = {"simulation_id": simulation, "prompt": prompt, "model": model, "timeout": timeout}
        return self._post(CommandAnswer, "interview/all", body)

    def interview_history(self, simulation: str, agent: int | None = None, limit: int = 100) -> list[HistoryRow]:
        body = {"simulation_id": simulation, "agent_id": agent, "limit": limit}
        return self._post(InterviewHistoryAnswer, "interview/history", body).history

    def inject(self, simulation: str, event: Mapping[str, Any]) -> CommandAnswer:
        """Let an event happen in a run that goes on."""
        return self._post(CommandAnswer, "inject", {"simulation_id": simulation, "event": dict(event)})

    def pause(self, simulation: str) -> CommandAnswer:
        return self._post(CommandAnswer, "pause", {"simulation_id": simulation})

    def unpause(self, simulation: str) -> CommandAnswer:
        return self._post(CommandAnswer, "continue", {"simulation_id": simulation})

    def environment(self, simulation: str) -> EnvironmentAnswer:
        return self._post(EnvironmentAnswer, "env-status", {"simulation_id": simulation})

    def close_environment(self, simulation: str, timeout: float = 30.0) -> CommandAnswer:
        """Ask a worker that waits for commands to leave."""
        return self._post(CommandAnswer, "close-env", {"simulation_id": simulation, "timeout": timeout})

    # Seats

    def seats(self, simulation: str, secret: str = "") -> list[SeatInfo]:
        """List the seats that people have taken, and the turns that wait; `is_mine` where the secret holds a seat."""
        path = f"{quote(simulation, safe='')}/seats"
        return [SeatInfo.model_validate(each) for each in self._request("GET", path, query={"secret": secret})["data"]]

    def take_seat(  # each is a field of the request
        self,
        simulation: str,
        agent: int,
        secret: str,
        *,
        seconds: float = 120.0,
        otherwise: str = "mind",
        force: bool = False,
    ) -> SeatInfo:
        """Decide for an agent from the next round on. The secret is yours: nobody else answers in your name."""
        body = {"simulation_id": simulation, "agent_id": agent, "secret": secret, "force": force}
        return self._post(SeatInfo, "seat/take", {**body, "seconds": seconds, "otherwise": otherwise})

    def answer_turn(
        self, simulation: str, agent: int, secret: str, turn: SeatTurnInfo, actions: Sequence[Mapping[str, Any]]
    ) -> TurnAnswerResult:
        """Answer a turn that waits, with actions as a model writes them: `{"action": "LIKE_POST", "post_id": 12}`."""
        body = {"simulation_id": simulation, "agent_id": agent, "secret": secret, "world": turn.world}
        done = {"round": turn.round, "actions": [dict(action) for action in actions]}
        return self._post(TurnAnswerResult, "seat/answer", {**body, **done})

    def give_seat_back(self, simulation: str, agent: int, secret: str) -> None:
        """Let the agent's own mind decide again, also in the turns that wait."""
        self._request("POST", "seat/give-back", body={"simulation_id": simulation, "agent_id": agent, "secret": secret})

    # The wire

    def _get(self, kind: type[A], simulation: str, route: str = "", **query: object) -> A:
        path = quote(simulation, safe="") + (f"/{route}" if route else "")
        return kind.model_validate(self._request("GET", path, query=query)["data"])

    def _post(self, kind: type[A], route: str, body: Mapping[str, Any]) -> A:
        return kind.model_validate(self._request("POST", route, body=body)["data"])

    def _request(
        self, method: str, path: str, *, query: Mapping[str, object] | None = None, body: object = None
    ) -> dict[str, Any]:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        target = f"{_PREFIX}/{path}" + (f"?{urlencode(given)}" if given else "")
        content = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, **({} if content is None else {"Content-Type": "application/json"})}
        for is_last in (False, True):
            connection = self._connection = self._connection or self._connect(_TIMEOUT_SECONDS)
            was_used = connection.sock is not None
            try:
                connection.request(method, target, content, headers)
                response = connection.getresponse()
                text = response.read()
                break
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # The server may have closed a connection that was not used for a while.
                if is_last or not was_used:
                    raise ServerRefused(0, f"{self.url} does not answer: {error}") from error
        if response.status != 200:
            raise _parse_refusal(response.status, text)
        answer: dict[str, Any] = json.loads(text)
        return answer

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_https else http.client.HTTPConnection
        return kind(*self._address, timeout=timeout)


def _parse_refusal(status: int, text: bytes) -> ServerRefused:
    try:
        return ServerRefused(status, str(json.loads(text)["error"]))
    except (ValueError, KeyError, TypeError):
        return ServerRefused(status, f"the server answered with {status}")
