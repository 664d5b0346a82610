"""Checks the built site: it loads nothing from other hosts, and its reference has every public name."""

import re
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from release.api import public_names, undocumented
from release.public import INTERNAL

LOADING: Final = {"audio", "embed", "iframe", "img", "input", "link", "object", "script", "source", "track", "video"}
ATTRIBUTES: Final = {"data", "href", "poster", "src", "srcset"}
EXTERNAL: Final = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
IN_STYLES: Final = re.compile(r"(?:url\(|@import)\s*[\"']?\s*((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)


class Loads(HTMLParser):
    """Collects the external URLs that a browser would fetch to show a page. Links do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the external URLs of a tag."""
        attributes = dict(attrs)
        if tag == "link" and attributes.get("rel") in ("canonical", "next", "prev"):
            return
        if tag in LOADING:
            self.found += [text for name, text in attrs if name in ATTRIBUTES and text and EXTERNAL.match(text)]
        self.found += IN_STYLES.findall(attributes.get("style") or "")
        if "mermaid" in (attributes.get("class") or "").split():
            self.found.append("a Mermaid diagram, for which the theme fetches a script")


def loads(site: Path) -> Iterator[str]:
    """The external URLs that the pages and styles of a site load."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        parser = Loads()
        parser.feed(text)
        yield from (f"{page}: {url}" for url in (*parser.found, *IN_STYLES.findall(text)))
    for style in site.rglob("*.css"):
        yield from (f"{style}: {url}" for url in IN_STYLES.findall(style.read_text(encoding="utf-8")))


def documented(site: Path) -> set[str]:
    """The names in the inventory of a site."""
    *_, packed = (site / "objects.inv").read_bytes().split(b"\n", 4)
    return {line.split()[0] for line in zlib.decompress(packed).decode().splitlines()}


def problems_of(names: set[str]) -> Iterator[str]:
    """What the reference lacks of the public names, and what it shows that is internal."""
    for name in undocumented(public_names(), names):
        yield f"not in the reference: {name}"
    for name in sorted(names & INTERNAL):
        yield f"internal, but in the reference: {name}"


def main(site: Path) -> None:
    """Print every problem. Exit with 1 if there is any."""
    problems = [f"loaded from another host: {url}" for url in loads(site)]
    names = documented(site)
    names |= {name.rpartition(".")[0] for name in names}  # a module is documented if one of its names is
    problems += problems_of(names)
    for problem in problems:
        print(problem)
    pages = sum(1 for _ in site.rglob("*.html"))
    print(f"{site}: {pages} pages, {len(public_names())} public names, {len(problems)} problems")
    sys.exit(bool(problems) or not pages)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
