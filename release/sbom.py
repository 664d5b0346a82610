"""The bill of materials in the wheel, in the format CycloneDX: what the package contains of others, and what it needs.

python -m release.sbom            fails if `sbom.cdx.json` is out of date
python -m release.sbom --write    writes it

It is made from `pyproject.toml`, the version and the first lines of the .proto files, and has no time and no random
number, so that equal sources give equal bytes. Dependencies have the ranges that the package declares: which versions
are installed is up to the user. `nox -s release` writes a second one, of what it installed.
"""

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from release.version import read_version

ROOT: Final = Path(__file__).parent.parent
FILE: Final = Path(__file__).parent / "sbom.cdx.json"

_NAMESPACE: Final = uuid.UUID("6e8a9a0c-29d5-4c0b-9a53-5f8a3f1f6a11")  # of this file's serial numbers; random, once
_ORIGIN: Final = re.compile(
    r"^// From etcd (v[\d.]+) \(([\w/.]+) of ([\w/.]+)\)\. (Copyright [^,]+), Apache License 2\.0\."
)
_REQUIREMENT: Final = re.compile(r"^([A-Za-z0-9._-]+)([^;]*)(?:;\s*(.*))?$")

Json = Mapping[str, object]


def make_sbom(project: Json, version: str, protos: Mapping[str, str]) -> str:
    """The bill of materials.

    Args:
        project: the table `project` of `pyproject.toml`.
        version: of the package.
        protos: the texts of the .proto files, by name.
    """
    name = str(project["name"])
    own = f"pkg:pypi/{name}@{version}"
    bundled = [_bundled(text) for _, text in sorted(protos.items())]
    contained = {str(each["bom-ref"]): each for each in bundled if each is not None}
    needed = [_dependency(text, None) for text in _strings(project["dependencies"])]
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    optional = [_dependency(text, extra) for extra, texts in sorted(extras.items()) for text in _strings(texts)]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, own)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": name,
                "version": version,
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
                "components": list(contained.values()),
            },
        },
        "components": [*needed, *optional],
        "dependencies": [
            {"ref": own, "dependsOn": sorted({str(each["bom-ref"]) for each in needed})},
            *({"ref": ref} for ref in sorted(contained)),
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _strings(value: object) -> Sequence[str]:
    assert isinstance(value, list)
    return [str(each) for each in value]


def _bundled(proto: str) -> Json | None:
    """What a .proto file was taken from; None if it was written for this package."""
    origin = _ORIGIN.match(proto)
    if origin is None:
        return None
    version, _, module, copyright_line = origin.groups()
    purl = f"pkg:golang/{module}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": module,
        "version": version,
        "description": "The definitions of the messages, from which etcd_aio/pb is generated",
        "scope": "required",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "copyright": copyright_line,
        "purl": purl,
    }


def _dependency(requirement: str, extra: str | None) -> Json:
    """A requirement. Versions are a property: the ranges of PEP 440 are not those of CycloneDX."""
    found = _REQUIREMENT.match(requirement)
    assert found is not None, requirement
    name, versions, marker = found[1].lower().replace("_", "-").replace(".", "-"), found[2].strip(), found[3]
    properties = [{"name": "etcd_aio:requires", "value": versions}]
    if marker:
        properties.append({"name": "etcd_aio:marker", "value": marker})
    if extra is not None:
        properties.append({"name": "etcd_aio:extra", "value": extra})
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}" if extra is None else f"pkg:pypi/{name}#{extra}",
        "name": name,
        "scope": "required" if extra is None else "optional",
        "purl": f"pkg:pypi/{name}",
        "properties": properties,
    }


def current() -> str:
    """The bill of materials of this checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = read_version((ROOT / "etcd_aio" / "_version.py").read_text(encoding="utf-8"))
    protos = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "proto").glob("*.proto")}
    return make_sbom(project, version, protos)


def main(arguments: Sequence[str]) -> int:
    """Write or compare the file. Returns the exit code."""
    if "--write" in arguments:
        FILE.write_text(current(), encoding="utf-8")
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != current():
        sys.stderr.write("release/sbom.cdx.json is out of date: run `python -m release.sbom --write`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
