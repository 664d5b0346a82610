"""What the site takes from outside of its folder: pages and pictures that live where others look for them."""

from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).parent.parent

# where the site has it: where it is
OUTSIDE: Final = {
    "changelog.md": ROOT / "CHANGELOG.md",
    "compatibility.md": ROOT / "docs" / "compatibility.md",
    "explanation/failover.svg": ROOT / "docs" / "failover.svg",
    "explanation/health.svg": ROOT / "docs" / "health.svg",
    "explanation/performance.svg": ROOT / "docs" / "performance.svg",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside."""
    for name, path in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files
