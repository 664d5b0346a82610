"""Adds pages and pictures to the site that are outside of its folder, because they are also read without it."""

from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).parent.parent

# path in the site: source
OUTSIDE: Final = {
    "changelog.md": ROOT / "CHANGELOG.md",
    "compatibility.md": ROOT / "docs" / "compatibility.md",
    "explanation/failover.svg": ROOT / "docs" / "failover.svg",
    "explanation/health.svg": ROOT / "docs" / "health.svg",
    "explanation/performance.svg": ROOT / "docs" / "performance.svg",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """See mkdocs: called with the files of the site."""
    for name, path in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files
