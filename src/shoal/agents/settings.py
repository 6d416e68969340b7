"""The settings of minds in a scenario."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from shoal.types import Action, Mention


class MindSettings(BaseModel):
    """What all settings of minds have in common: they never change, and have no other fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Latency(MindSettings):
    """How long decisions take, drawn from a lognormal distribution."""

    median_ms: float = Field(gt=0, description="Half of the decisions are faster than this.")
    sigma: float = Field(default=0.8, ge=0, le=3, description="Spread of the logarithm; 0: all take the same time.")


class HeuristicSettings(MindSettings):
    """The offline mind: a seeded classical agent model, never a language model."""

    kind: Literal["heuristic"] = "heuristic"
    confidence: float = Field(default=0.6, ge=0, le=2, description="Opinions further away than this do not persuade.")
    persuasion: float = Field(
        default=0.08, ge=0, le=1, description="How far one agreeable post pulls the agent's opinion."
    )
    influence_rule: Literal["pull", "average", "naming"] = Field(
        default="pull",
        description="pull: each opinion pulls by `persuasion`, one after another; average: all of them count alike; "
        "naming: of two words for one thing people take up what they hear, and nothing moves those at -1 or 1.",
    )
    attention: int = Field(
        default=3, ge=1, le=1_000_000, description="Opinions that count in one turn; in a room, the latest."
    )
    talkativeness: float = Field(
        default=1.0, ge=0, le=10, description="Multiplies the chance to write or speak rather than react."
    )
    outspoken: bool = Field(
        default=False, description="Everybody in a room says what they think of the topic, in every turn."
    )
    latency: Latency | None = Field(
        default=None,
        description="Let decisions take time and be journaled, as if a language model had been asked: a rehearsal.",
    )


class MeasureSettings(MindSettings):
    """How often agents with a language model are asked what they think, outside of their history."""

    every: int = Field(ge=1, le=1_000_000, description="Rounds between two surveys; each asks every agent once.")


class ScriptedTurn(MindSettings):
    """What one agent does in one round."""

    round: int = Field(ge=1, description="The round.")
    agent: str | int = Field(description="Name or number of the agent.")
    world: str | None = Field(default=None, description="Only in this world; default: in all.")
    action: str = Field(description="Kind of action, for example CREATE_POST.")
    args: dict[str, Any] = Field(default_factory=dict, description="Arguments of the action.")
    supports: str | None = Field(default=None, description="Id of the claim that its text supports.")
    denies: str | None = Field(default=None, description="Id of the claim that its text denies.")
    questions: str | None = Field(default=None, description="Id of the claim that its text doubts.")
    strength: float = Field(default=1.0, gt=0, le=1, description="How strongly it does.")

    @model_validator(mode="after")
    def _check_one_claim(self) -> Self:
        given = [name for name in ("supports", "denies", "questions") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"a text is for or against a claim; it already says {given[0]!r}")
        if given and "claim" in self.args:
            raise ValueError(f"a text speaks of one claim; leave out 'claim' in its args, or {given[0]!r}")
        return self

    def build_action(self) -> Action:
        """Build the action, with what its text says of a claim as data."""
        mention = Mention.of(self.supports, self.denies, self.questions, self.strength)
        return Action(self.action, {**self.args, **({} if mention is None else msgspec.to_builtins(mention))})


class ScriptedSettings(MindSettings):
    """Agents that do what a script lists, and nothing else. Each turn is journaled like a reply from outside."""

    kind: Literal["scripted"]
    turns: tuple[ScriptedTurn, ...] = Field(default=(), description="Who does what, when.")
    latency: Latency | None = Field(default=None, description="Let decisions take time.")


class PriceSettings(MindSettings):
    """What a model costs that is not in the table of prices, in US dollars per million tokens."""

    input: float = Field(ge=0, description="Per million tokens sent, such as 0.4.")
    output: float = Field(ge=0, description="Per million tokens received, such as 1.6.")


#: What `memory: graph` gives the graph.
_GRAPH_TOKENS = 300


class MemorySettings(MindSettings):
    """How much of its past an agent is shown. The three budgets together are the most that a prompt ever holds."""

    recent_tokens: int = Field(default=500, ge=50, le=100_000, description="For the latest turns, word for word.")
    recalled_tokens: int = Field(
        default=300,
        ge=0,
        le=100_000,
        description="For older turns that bear on what the agent sees; they also take what the other two leave. "
        "0: none.",
    )
    insights_tokens: int = Field(default=200, ge=0, le=100_000, description="For what the agent made of its past.")
    graph_tokens: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="For what the graph memory knows of the people in sight: their views, and what is between them and "
        "the agent; `memory: graph` sets 300.",
    )
    episodes_shown: int = Field(
        default=6,
        ge=1,
        le=10_000,
        description="A prompt holds no more than this many turns of usual length, so it soon stops growing.",
    )
    episodes_kept: int = Field(
        default=400, ge=1, le=100_000, description="Turns that can be recalled; then the oldest goes."
    )
    consolidate_every: int | None = Field(
        default=12, ge=0, le=100_000, description="Turns after which the agent draws conclusions; 0: never."
    )
    lag_rounds: int = Field(
        default=3,
        ge=1,
        le=1000,
        description="Rounds until conclusions count, so that nobody has to wait while they are drawn.",
    )
    model: str | None = Field(default=None, description="Model that draws conclusions; default: that of the mind.")
    embeddings: str | None = Field(
        default=None,
        description="Embedding model that judges what bears on what, such as local/wordllama; default: the words in "
        "common.",
    )

    @property
    def total_tokens(self) -> int:
        return self.recent_tokens + self.recalled_tokens + self.insights_tokens + self.graph_tokens

    @model_validator(mode="before")
    @classmethod
    def _read_word(cls, value: Any) -> Any:
        """Read `memory: graph` as the usual settings with knowledge of the graph."""
        return {"graph_tokens": _GRAPH_TOKENS} if value == "graph" else value


class PromptSettings(MindSettings):
    """The texts of prompts: templates with variables in braces. What is not given stays as it is."""

    system: str | None = Field(default=None, description="The whole system message.")
    role: str | None = Field(default=None, description="Part of it: what the model is to do.")
    style: str | None = Field(default=None, description="Part of it: how people behave and write.")
    rules: str | None = Field(default=None, description="Part of it: what the world is like.")
    reply: str | None = Field(default=None, description="Part of it: the form of a reply.")
    user: str | None = Field(default=None, description="The whole user message.")
    persona: str | None = Field(default=None, description="Part of it: who the person is.")
    ask: str | None = Field(default=None, description="Part of it: its last words.")
    persona_tokens: int | None = Field(
        default=None, ge=20, le=100_000, description="Tokens for who a person is, at most; default: nothing is cut."
    )
    size: Literal["full", "compact"] | None = Field(
        default=None, description="How much is said; default: compact for a small context or a local model, else full."
    )
    version: Literal[1, 2] = Field(
        default=2, description="1: prompts as Shoal 0.2 wrote them, for runs that were begun with it."
    )

    def templates(self) -> dict[str, str]:
        """Return the templates that are given, by name."""
        return {name: text for name in PROMPT_TEMPLATES if (text := getattr(self, name)) is not None}


#: A model that takes no more than this gets compact prompts, and these are the most that they hold.
SMALL_CONTEXT_TOKENS = 8192
_COMPACT_OBSERVATION_TOKENS, _COMPACT_ACTIONS = 350, 2
#: The same of the past. Recent turns stay where they are in a prompt, so that a server reads each of them once.
_COMPACT_MEMORY = {"recent_tokens": 500, "recalled_tokens": 100, "insights_tokens": 80, "episodes_shown": 12}
#: The templates that can be replaced. `system` and `user` are whole messages, the others parts of them.
PROMPT_TEMPLATES = ("system", "role", "style", "rules", "reply", "user", "persona", "ask")


class GroupMindSettings(MindSettings):
    """How the people of one group are asked; what is not given is as for all people."""

    model: str | None = Field(default=None, min_length=1, description="Their model.")
    base_url: str | None = Field(default=None, description="Address of the server that has their model.")
    key_variable: str | None = Field(
        default=None, description="Environment variable that holds the key of that server."
    )
    temperature: float | None = Field(default=None, ge=0, le=2, description="How varied their replies are.")
    max_tokens: int | None = Field(default=None, ge=16, le=100_000, description="Tokens of one reply, at most.")
    prompt: PromptSettings = Field(default=PromptSettings(), description="Templates of their own.")


class LanguageSettings(MindSettings):
    """Agents that ask a language model: one call for each turn."""

    kind: Literal["language"] = "language"
    model: str = Field(min_length=1, description="Provider and model, such as openai/gpt-4.1-mini or ollama/llama3.2.")
    base_url: str | None = Field(
        default=None,
        description="Address of an OpenAI-compatible server, such as http://localhost:8000/v1; default: its own.",
    )
    key_variable: str | None = Field(
        default=None, description="Environment variable that holds the key, such as MY_KEY; default: the provider's."
    )
    temperature: float | None = Field(
        default=0.7, ge=0, le=2, description="How varied replies are; null where a model does not take it."
    )
    max_tokens: int = Field(default=600, ge=16, le=100_000, description="Tokens of one reply, at most.")
    max_actions: int = Field(default=4, ge=1, le=32, description="Actions in one turn, at most.")
    observation_tokens: int = Field(
        default=500, ge=100, le=100_000, description="Tokens for what an agent sees in one turn, roughly, at most."
    )
    context_tokens: int | None = Field(
        default=None, ge=512, description="Tokens of prompt and reply that the model takes; default: not known."
    )
    price: PriceSettings | None = Field(
        default=None, description="Such as {input: 0.4, output: 1.6}; default: from the table of prices."
    )
    memory: MemorySettings = Field(
        default=MemorySettings(), description="How much of its past an agent is shown; `graph`: also what others think."
    )
    prompt: PromptSettings = Field(default=PromptSettings(), description="What models are told; default: Shoal's own.")
    by_group: dict[str, str | GroupMindSettings] = Field(
        default_factory=dict, description="Models of some groups, such as {experts: openai/gpt-4.1}, or more of theirs."
    )
    by_agent: dict[str, str] = Field(
        default_factory=dict, description="Models of some people by name, such as {Ada Lund: openai/gpt-4.1}."
    )

    @property
    def is_compact(self) -> bool:
        """Whether prompts are written for a small model."""
        if self.prompt.size is not None or self.prompt.version == 1:
            return self.prompt.size == "compact"
        is_local = re.split("[/:]", self.model)[0] == "local"
        return is_local or (self.context_tokens or SMALL_CONTEXT_TOKENS + 1) <= SMALL_CONTEXT_TOKENS

    def fit_to_size(self) -> LanguageSettings:
        """Return the settings with less to see and to remember, where prompts are compact."""
        if not self.is_compact:
            return self
        fitted = {
            "observation_tokens": min(self.observation_tokens, _COMPACT_OBSERVATION_TOKENS),
            # A small model fills every list that it may fill.
            "max_actions": min(self.max_actions, _COMPACT_ACTIONS),
            "memory": self.memory.model_copy(update=self._fit_memory()),
        }
        return self.model_copy(update=fitted)

    def _fit_memory(self) -> dict[str, int]:
        """Return how much of the past a compact prompt shows: what the scenario says, up to the most."""
        usual, memory = MemorySettings(), self.memory
        fitted = {
            name: most if getattr(memory, name) == getattr(usual, name) else min(getattr(memory, name), most)
            for name, most in _COMPACT_MEMORY.items()
        }
        # What words in common bring back is another choice of turns each time, and has to be read anew.
        if memory.embeddings is None and memory.recalled_tokens == usual.recalled_tokens:
            fitted["recalled_tokens"] = 0
        return fitted

    def for_group(self, group: str | None) -> LanguageSettings:
        """Return the settings of the people of a group: their own, and those of all people where they have none."""
        own = self.by_group.get(group or "")
        if own is None:
            return self
        if isinstance(own, str):
            return self.model_copy(update={"model": own})
        changed = {name: value for name, value in own if value is not None and name != "prompt"}
        prompt = {name: value for name, value in own.prompt if value is not None and name != "version"}
        return self.model_copy(update={**changed, "prompt": self.prompt.model_copy(update=prompt)})

    def model_of(self, name: str, group: str | None) -> str:
        """Return the model of a person: their own, else that of their group, else the model of all."""
        return self.by_agent.get(name) or self.for_group(group).model

    def models(self) -> tuple[str, ...]:
        """Return every model that may be asked, each once."""
        return tuple(self.addresses())

    def addresses(self) -> dict[str, tuple[str | None, str | None]]:
        """Return every model that may be asked, with the address and the variable of the key that are given for it."""
        usual = self.base_url, self.key_variable
        memory = [model for model in (self.memory.model, self.memory.embeddings) if model is not None]
        found = {self.model: usual}
        for group in self.by_group:
            own = self.for_group(group)
            found.setdefault(own.model, (own.base_url, own.key_variable))
        return found | {model: usual for model in (*self.by_agent.values(), *memory) if model not in found}
