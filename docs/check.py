"""Checks the built site: it loads nothing from elsewhere, and its reference has every public name."""

import re
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import etcd_aio
import etcd_aio.errors
import etcd_aio.testing

LOADING: Final = {"audio", "embed", "iframe", "img", "input", "link", "object", "script", "source", "track", "video"}
ATTRIBUTES: Final = {"data", "href", "poster", "src", "srcset"}
ELSEWHERE: Final = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
INTERNAL: Final = {
    f"etcd_aio.errors.{name}" for name in ("AttemptFailure", "Remedy", "printable", "server_error", "with_history")
}
"""For use between the layers; users do not meet them."""
IN_STYLES: Final = re.compile(r"(?:url\(|@import)\s*[\"']?\s*((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)


class Loads(HTMLParser):
    """Collects the URLs that a browser would fetch from elsewhere to show a page. Links to click do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        given = dict(attrs)
        if tag == "link" and given.get("rel") in ("canonical", "next", "prev"):
            return
        if tag in LOADING:
            self.found += [text for name, text in attrs if name in ATTRIBUTES and text and ELSEWHERE.match(text)]
        self.found += IN_STYLES.findall(given.get("style") or "")
        if "mermaid" in (given.get("class") or "").split():
            self.found.append("a Mermaid diagram, for which the theme fetches a script")


def loads(site: Path) -> Iterator[str]:
    """Everything that the pages of a site load from elsewhere."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        parser = Loads()
        parser.feed(text)
        yield from (f"{page}: {one}" for one in (*parser.found, *IN_STYLES.findall(text)))
    for style in site.rglob("*.css"):
        yield from (f"{style}: {one}" for one in IN_STYLES.findall(style.read_text(encoding="utf-8")))


def documented(site: Path) -> set[str]:
    """The names in the inventory of a site."""
    *_, packed = (site / "objects.inv").read_bytes().split(b"\n", 4)
    return {line.split()[0] for line in zlib.decompress(packed).decode().splitlines()}


def public() -> set[str]:
    """The names that the public packages list."""
    return {
        f"{package.__name__}.{name}"
        for package in (etcd_aio, etcd_aio.errors, etcd_aio.testing)
        for name in package.__all__
    }


def main(site: Path) -> None:
    """Print what is wrong; exit with 1 if anything is."""
    wrong = [f"loaded from elsewhere: {one}" for one in loads(site)]
    found = documented(site)
    found |= {name.rpartition(".")[0] for name in found}  # a module counts if a name in it does
    wrong += [f"not in the reference: {name}" for name in sorted(public() - INTERNAL - found)]
    for line in wrong:
        print(line)
    pages = sum(1 for _ in site.rglob("*.html"))
    print(f"{site}: {pages} pages, {len(public())} public names, {len(wrong)} wrong")
    sys.exit(bool(wrong) or not pages)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
