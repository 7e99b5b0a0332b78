#!/usr/bin/env python3
"""Writes what a file is made of as CycloneDX 1.6, and checks it against its schema (needs cyclonedx-python-lib[json-validation]).

    sbom.py wheel   --name NAME --version VERSION --date EPOCH --libraries TABLE  > sbom.json
    sbom.py release --name NAME --version VERSION --date EPOCH FILE...            > sbom.json

wheel: the libraries of TABLE, which tools/wheel/libraries writes. release: every FILE with its SHA-256; the packages that a
Debian package (*.deb) depends on, with the versions of this machine, and what the list in a wheel (*.whl) says. The same
files, versions and date give the same bytes.
"""
import argparse
import datetime
import hashlib
import json
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL


def component(name, version, licence=None, purl=None, kind=ComponentType.LIBRARY, **more):
    return Component(name=name, version=version, type=kind, bom_ref=purl or f"{name}@{version}",
                     licenses=[LicenseFactory().make_from_string(licence)] if licence else [],
                     purl=PackageURL.from_string(purl) if purl else None, **more)


def from_table(path):
    for line in Path(path).read_text().splitlines():
        name, version, licence, purl = line.split("\t")
        yield component(name, version, licence, purl or None)


def needs_of_package(path):
    """The packages of this machine that a Debian package depends on, but those of the project itself."""
    depends = subprocess.run(["dpkg-deb", "--field", path, "Depends"], check=True, capture_output=True, text=True).stdout
    for choice in depends.replace("\n", " ").split(","):
        name = choice.split("|")[0].split("(")[0].strip().removesuffix(":any")
        if not name or "ndtd" in name:
            continue
        found = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", name], capture_output=True, text=True)
        version = found.stdout.strip() if found.returncode == 0 else None  # a package that only runs with it
        yield component(name, version, purl=f"pkg:deb/debian/{name}" + (f"@{version}" if version else ""))


def needs_of_wheel(path):
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if name.endswith(".cdx.json"):
                yield from Bom.from_json(json.loads(wheel.read(name))).components


def file_component(path, version):
    purl = f"pkg:generic/{path.name}@{version}"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return component(path.name, version, "Apache-2.0", purl, ComponentType.FILE,
                     hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)])


def release(bom, paths, version):
    known = {}
    for path in sorted(map(Path, paths)):
        made = file_component(path, version)
        needed = needs_of_package(path) if path.suffix == ".deb" else needs_of_wheel(path) if path.suffix == ".whl" else []
        needed = [known.setdefault(part.bom_ref.value, part) for part in needed]
        bom.components.add(made)
        bom.components.update(needed)
        bom.register_dependency(made, needed)
        bom.register_dependency(bom.metadata.component, [made])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("wheel", "release"))
    parser.add_argument("--name", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--date", type=int, required=True)
    parser.add_argument("--libraries")
    parser.add_argument("files", nargs="*")
    args = parser.parse_intermixed_args()
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{args.kind}:{args.name}@{args.version}:{args.date}"))
    bom.metadata.timestamp = datetime.datetime.fromtimestamp(args.date, datetime.timezone.utc)
    bom.metadata.component = component(args.name, args.version, "Apache-2.0", f"pkg:pypi/{args.name}@{args.version}",
                                       ComponentType.APPLICATION)
    if args.kind == "wheel":
        parts = list(from_table(args.libraries))
        bom.components.update(parts)
        bom.register_dependency(bom.metadata.component, parts)
    else:
        release(bom, args.files, args.version)
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong:
        sys.exit(f"sbom: {wrong}")
    print(text)


if __name__ == "__main__":
    main()
