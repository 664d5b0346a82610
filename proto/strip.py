"""Copy etcd's .proto files from a release, without what only Go, the HTTP gateway and etcd's own storage need.

    python proto/strip.py SOURCE_DIR

SOURCE_DIR is the folder of the Go module `go.etcd.io/etcd/api/v3` in the wanted release. Its version is read from
`version/version.go`, and written into the head of every file. Comments stay, and become docstrings.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Final

PROTO_DIR: Final = Path(__file__).resolve().parent

SOURCES: Final = {
    "rpc.proto": "etcdserverpb/rpc.proto",
    "kv.proto": "mvccpb/kv.proto",
    "auth.proto": "authpb/auth.proto",
    "version.proto": "versionpb/version.proto",
}

# Here all files are in one folder. version.proto declares the options that are removed, so no file imports it.
KEPT_IMPORTS: Final = {
    "etcd/api/mvccpb/kv.proto": "kv.proto",
    "etcd/api/authpb/auth.proto": "auth.proto",
    "google/protobuf/descriptor.proto": "google/protobuf/descriptor.proto",
}

HEAD: Final = """\
// From etcd {release} ({path} of go.etcd.io/etcd/api/v3). Copyright The etcd Authors, Apache License 2.0.
// Changed: annotations stripped and imports flattened by strip.py.

"""

_IMPORT: Final = re.compile(r'(?P<above>(?:^//[^\n]*\n)*)^import "(?P<path>[^"]+)";\n', re.MULTILINE)
_OPTION: Final = re.compile(r"^[ \t]*option\s", re.MULTILINE)
# A field option in brackets whose name is in parentheses is an extension. Others are protobuf's own, and stay.
_FIELD_OPTIONS: Final = re.compile(r"\s*\[\s*\([\w.]+\)[^\[\]]*\](?=\s*;)")
_EMPTY_RPC: Final = re.compile(r"(\brpc [^{};]*\))\s*\{\s*\}")
_BLANK_AFTER_BRACE: Final = re.compile(r"\{\n\n+")
_BLANK_LINES: Final = re.compile(r"\n{3,}")


def strip_annotations(text: str) -> str:
    """Remove options, foreign imports and the blank lines that they leave."""
    text = _IMPORT.sub(_keep_import, text)
    text = _without_options(text)
    text = _FIELD_OPTIONS.sub("", text)
    text = _EMPTY_RPC.sub(r"\1;", text)
    text = _BLANK_AFTER_BRACE.sub("{\n", text)
    return _BLANK_LINES.sub("\n\n", text)


def _keep_import(found: re.Match[str]) -> str:
    path = found["path"]
    kept = KEPT_IMPORTS.get(path, path if path in KEPT_IMPORTS.values() else None)
    # A comment directly above an import is about that import, so it is removed with it.
    return f'{found["above"]}import "{kept}";\n' if kept else ""


def _without_options(text: str) -> str:
    """Remove option statements. Each begins on its own line; its value may be a block with nested braces."""
    kept: list[str] = []
    position = 0
    while option := _OPTION.search(text, position):
        kept.append(text[position : option.start()])
        position = _end_of_statement(text, option.end())
    kept.append(text[position:])
    return "".join(kept)


def _end_of_statement(text: str, position: int) -> int:
    """The start of the line after the statement, which ends with the first semicolon outside of braces and strings."""
    depth = 0
    for token in re.compile(r'"(?:\\.|[^"\\])*"|[{};]').finditer(text, position):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if token[0] == ";" and depth == 0:
            return token.end() + 1 if text[token.end() : token.end() + 1] == "\n" else token.end()
    raise ValueError("an option statement does not end")


def release_of(source_dir: Path) -> str:
    """The release of the Go module, such as "v3.7.3"."""
    found = re.search(r'^\s*Version\s*=\s*"([^"]+)"', (source_dir / "version/version.go").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"{source_dir}/version/version.go has no Version")
    return f"v{found[1]}"


def main() -> int:
    """Write proto/*.proto. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source_dir", type=Path, metavar="SOURCE_DIR")
    source_dir: Path = parser.parse_args().source_dir
    release = release_of(source_dir)
    for name, path in SOURCES.items():
        text = HEAD.format(release=release, path=path) + strip_annotations((source_dir / path).read_text())
        (PROTO_DIR / name).write_text(text)
        sys.stdout.write(f"{name}: etcd {release}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
