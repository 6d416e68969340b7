"""The promises the repository makes about itself: exports, imports, budgets, and nothing of one machine in it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import shoal
from tests.conftest import SLOW

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "shoal"
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_MODULE_LINES = 600
#: Optional extras, and a dependency that is slow to load and that few commands need.
LOADED_LATE = {"neo4j", "polars", "xllamacpp", "genai_prices"}
MAX_MODULES_IN_FOLDER = 13
IRREGULAR_PARTICIPLES = frozenset(
    "begun chosen cut done drawn found given gone heard held kept known left made met said seen sent shown spent "
    "spoken taken told understood worn written".split()
)
VERBS_IN_ED = frozenset("embed exceed feed heed need proceed seed speed".split())
#: Functions that users call in the conditions of interventions, by the name they have there.
CONDITION_WORDS = frozenset({"said"})

#: A reader must decode who is meant by these, or how many. A few are harmless; many make a dialect.
RIDDLES = re.compile(
    r"\b(somebody|nobody|everybody|whoever|whom|those who|so many|so long|one's own|of its own|comes? to nothing|"
    r"is told|are told|by lot|what came of|made to happen|where there is none|as it stands)\b",
    re.IGNORECASE,
)
MAX_RIDDLES = 50

# exports


def test_the_package_exports_exactly_what_its_table_of_contents_lists() -> None:
    assert set(shoal.__all__) == set(vars(shoal)["_HOMES"])


@pytest.mark.parametrize("name", shoal.__all__)
def test_each_exported_name_is_the_one_its_module_defines(name: str) -> None:
    home = import_module(vars(shoal)["_HOMES"][name])
    assert getattr(shoal, name) is getattr(home, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        getattr(shoal, "Nobody")  # noqa: B009


def test_importing_the_package_loads_no_dependency() -> None:
    code = "import sys, shoal; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pydantic", "click", "msgspec", "rich", "yaml", "asyncio", "typing"} & set(loaded)


# the import contract


FORBIDDEN = {"upwards": ("worlds", "runs"), "sideways": ("models", "engine"), "along the floor": ("types", "errors")}


@pytest.fixture(scope="module")
def broken_contract(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What lint-imports says of a copy with forbidden imports. `scripts/check` holds that the real one is whole."""
    folder = tmp_path_factory.mktemp("copy")
    rooms = folder / "src" / "shoal"
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(SOURCE, rooms, ignore=shutil.ignore_patterns("__pycache__", "pages"))
    for importer, imported in FORBIDDEN.values():
        target = rooms / importer / "planted.py" if (rooms / importer).is_dir() else rooms / f"{importer}.py"
        with target.open("a") as file:
            file.write(f"\nimport shoal.{imported}\n")
    (rooms / "attic").mkdir()
    (rooms / "attic" / "__init__.py").touch()
    result = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    return result.stdout


@pytest.mark.parametrize(("importer", "imported"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_forbidden_import_breaks_the_contract(broken_contract: str, importer: str, imported: str) -> None:
    assert "Rooms import only downwards BROKEN" in broken_contract
    assert f"shoal.{importer} is not allowed to import shoal.{imported}:" in broken_contract


def test_nothing_else_breaks_the_contract(broken_contract: str) -> None:
    assert broken_contract.count("is not allowed to import") == len(FORBIDDEN)


def test_a_room_without_a_declared_place_breaks_the_contract(broken_contract: str) -> None:
    assert "The following modules are not listed as layers:\n\n- shoal.attic\n\n" in broken_contract


# rooms and names


@cache
def parse_modules() -> dict[str, ast.Module]:
    """The package's modules by their dotted name."""
    names = {path: path.relative_to(SOURCE.parent).with_suffix("").parts for path in MODULES}
    return {".".join(parts).removesuffix(".__init__"): ast.parse(path.read_text()) for path, parts in names.items()}


def test_other_rooms_import_only_what_a_room_lists() -> None:
    """A room lists in `__init__` what others may use; its own modules import one another directly."""
    trees = parse_modules()
    floor = {path.stem for path in SOURCE.glob("*.py")}
    offences = []
    for module, tree in trees.items():
        room = module.split(".")[1:2]
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("shoal."):
                continue
            target = str(node.module)
            if [target.split(".")[1]] == room or target.split(".")[1] in floor or module == "shoal":
                continue
            listed = read_list(target, trees)
            offences += [f"{module}: {target}.{name.name}" for name in node.names if name.name not in listed]
    assert offences == []


def read_list(room: str, trees: dict[str, ast.Module]) -> set[str]:
    """The names that the `__init__` of a room imports."""
    if SOURCE.parent.joinpath(*room.split("."), "__init__.py") not in MODULES:
        return set()
    imports = [node for node in trees[room].body if isinstance(node, ast.ImportFrom)]
    return {name.asname or name.name for node in imports for name in node.names}


def test_a_folder_holds_few_modules_side_by_side() -> None:
    folders = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    assert [str(folder) for folder, modules in folders.items() if modules > MAX_MODULES_IN_FOLDER] == []


def test_what_only_linux_has_stands_in_two_rooms() -> None:
    """`unix` and `machine` say what they do where it is missing; the rest runs on any Unix."""
    linux = re.compile(r'"/(proc|sys)\b|\b(fcntl|inotify\w*|pidfd_open|epoll|sched_getaffinity)\b')
    rooms = [path for path in MODULES if not {"unix.py", "machine"} & set(path.relative_to(SOURCE).parts[:1])]
    assert [str(path) for path in rooms if linux.search(path.read_text())] == []


def test_a_class_name_is_used_once_in_the_package() -> None:
    classes = Counter(
        node.name for tree in parse_modules().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    assert [name for name, times in classes.items() if times > 1] == []


def is_participle(name: str) -> bool:
    word = name.strip("_").split("_")[0]
    looks_like_one = word in IRREGULAR_PARTICIPLES or (word.endswith("ed") and word not in VERBS_IN_ED)
    return looks_like_one and name not in CONDITION_WORDS


def test_no_function_is_named_by_a_participle() -> None:
    """A function is a verb phrase; a property and a named constructor say what they are or give."""
    found = [
        f"{module}:{node.lineno} {node.name}"
        for module, tree in parse_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name)
        if not {"property", "cached_property", "classmethod"} & {ast.unparse(each) for each in node.decorator_list}
    ]
    assert found == []


def read_prose(path: Path, tree: ast.Module) -> Iterator[str]:
    """The docstrings and comments of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    with path.open("rb") as file:
        yield from (token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT)


def test_docstrings_and_comments_are_plain() -> None:
    modules = zip(MODULES, parse_modules().values(), strict=True)
    texts = [(path.relative_to(SOURCE).as_posix(), text) for path, tree in modules for text in read_prose(path, tree)]
    found = [f"{path}: {text}" for path, text in texts if RIDDLES.search(text)]
    assert len(found) <= MAX_RIDDLES, "\n".join(found)


# budgets and smells


def offences(path: Path, tree: ast.Module) -> Iterator[str]:
    """What this code base has none of, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield f"line {node.lineno}: a global statement"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Import | ast.ImportFrom) and not imports_late(inner):
                    yield f"line {inner.lineno}: an import inside {node.name}()"
        if isinstance(node, ast.ExceptHandler) and swallows(node):
            yield f"line {node.lineno}: every exception is swallowed"
        if isinstance(node, ast.ImportFrom) and node.module == "shoal" and path != SOURCE / "__init__.py":
            for name in {alias.name for alias in node.names} & set(shoal.__all__):
                yield f"line {node.lineno}: {name} imported from the package instead of its home"


def imports_late(node: ast.Import | ast.ImportFrom) -> bool:
    """Return whether everything that is imported is of the few modules that may be loaded late."""
    modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
    return set(modules) <= LOADED_LATE


def swallows(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    broad = {name.id for name in ast.walk(handler.type) if isinstance(name, ast.Name)} & {"Exception", "BaseException"}
    silent = all(isinstance(step, ast.Pass | ast.Continue) or is_literal(step) for step in handler.body)
    return bool(broad) and silent


def is_literal(step: ast.stmt) -> bool:
    return isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)


def test_no_module_has_a_smell() -> None:
    modules = zip(MODULES, parse_modules().values(), strict=True)
    assert [f"{path}: {found}" for path, tree in modules for found in offences(path, tree)] == []


def test_a_module_stays_within_its_budget_of_lines() -> None:
    """A longer one is split where it has a seam."""
    lines = {str(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {path: count for path, count in lines.items() if count > MAX_MODULE_LINES} == {}


def test_smells_are_found_where_they_are(tmp_path: Path) -> None:
    smelly = tmp_path / "smelly.py"
    smelly.write_text(
        "from shoal import Scenario\n"
        "def f():\n    global x\n    import os\n"
        "    try:\n        pass\n    except:\n        raise\n"
        "    try:\n        pass\n    except (ValueError, Exception):\n        'no matter'\n"
    )
    found = "\n".join(sorted(offences(smelly, ast.parse(smelly.read_text()))))
    assert found == (
        "line 11: every exception is swallowed\n"
        "line 1: Scenario imported from the package instead of its home\n"
        "line 3: a global statement\n"
        "line 4: an import inside f()\n"
        "line 7: every exception is swallowed"
    )


# nothing of one machine

# Written in pieces, so that this file does not find itself.
_HOSTS = [
    f"{name}.{top}" for name, top in [("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com")]
]
_HOME_PATH = re.compile(r"(?<![\w.*])/(?:home|root|Users)" + r"/\w")


def repository_files() -> Iterator[Path]:
    """Every file that git would keep: .gitignore is followed, as far as this project uses its language."""
    patterns = (ROOT / ".gitignore").read_text().split()
    for folder, folders, files in os.walk(ROOT):
        here = Path(folder)
        folders[:] = [
            name
            for name in folders
            if (name == ".ci" or not name.startswith(".")) and not is_ignored(here / name, patterns)
        ]
        yield from (here / name for name in files if not is_ignored(here / name, patterns))


def is_ignored(path: Path, patterns: list[str]) -> bool:
    relative = path.relative_to(ROOT).as_posix()
    return any(
        relative == pattern.strip("/") if pattern.startswith("/") else fnmatch(path.name, pattern.rstrip("/"))
        for pattern in patterns
    )


def test_no_file_names_a_package_host_or_a_path_of_one_machine() -> None:
    found = []
    for path in repository_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        names = [name for name in (*_HOSTS, f"{ROOT}/") if name in text]
        names += _HOME_PATH.findall(text)
        found += [f"{path.relative_to(ROOT)}: {name}" for name in names]
    assert found == []


def test_the_lock_holds_a_hash_for_every_package() -> None:
    lock = (ROOT / "requirements.lock").read_text().replace("\\\n", "")
    packages = [line for line in lock.splitlines() if not line.startswith("#")]
    assert len(packages) > 1
    assert [line for line in packages if "==" not in line or "--hash=sha256:" not in line] == []


@pytest.mark.parametrize(
    "path", sorted([*(ROOT / "scripts").iterdir(), ROOT / ".ci" / "run"]), ids=lambda path: path.name
)
def test_a_script_is_executable_and_stops_at_the_first_error(path: Path) -> None:
    assert os.access(path, os.X_OK)
    assert "set -euo pipefail" in path.read_text()


def test_every_path_that_is_called_slow_exists() -> None:
    assert [part for part in SLOW if not (ROOT / "tests" / part).exists()] == []
