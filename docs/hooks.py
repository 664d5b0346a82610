"""Adds pages and pictures from outside of the site's folder; lists the main guides first in search results."""

from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parent.parent

# path in the site: source, which is also read without the site
OUTSIDE: Final = {
    "changelog.md": ROOT / "CHANGELOG.md",
    "explanation/failover.svg": ROOT / "docs" / "failover.svg",
    "explanation/health.svg": ROOT / "docs" / "health.svg",
    "explanation/performance.svg": ROOT / "docs" / "performance.svg",
    "explanation/locks.svg": ROOT / "docs" / "locks.svg",
    "how-to/dashboard.json": ROOT / "docs" / "dashboard.json",
    "how-to/dashboard.svg": ROOT / "docs" / "dashboard.svg",
    "explanation/elections.svg": ROOT / "docs" / "elections.svg",
}
# The beginning of a path: its weight in search results. The search joins the words of a question by "or", so without
# weights long pages that have all of the small words come first.
WEIGHTS: Final = {
    "reference/": 0.3,
    "changelog.md": 0.1,
    "explanation/": 0.6,
    "examples.md": 0.6,
    **{
        f"how-to/{guide}.md": 2.0
        for guide in (
            *("watches", "locks", "leader-election", "leases", "retries", "errors", "transactions", "testing"),
            *("blocking-code", "coming-from-etcd3"),
        )
    },
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files from outside. mkdocs calls this with the files of the site."""
    for name, path in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for beginning in WEIGHTS:
        if not any(uri.startswith(beginning) for uri in files.src_uris):
            raise PluginError(f"docs/hooks.py has a weight for {beginning}, and there is no such page")
    return files


def on_page_markdown(markdown: str, page: Page, **kwargs: Any) -> str:
    """Set the weight of a page in search results. mkdocs calls this with the text of each page."""
    for path, weight in WEIGHTS.items():
        if page.file.src_uri.startswith(path):
            page.meta["search"] = {"boost": weight}
    return markdown
