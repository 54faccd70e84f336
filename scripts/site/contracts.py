#!/usr/bin/env python3
"""Checks the contracts of public headers: every declaration has one, and that of a function names each parameter.

  scripts/site/contracts.py [FOLDER…]

Prints FILE:LINE: WHAT for each finding (of the folders or files, if some are given), the number on stderr, and
fails if there is one. Needs Doxygen.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What the language defines needs no contract.
DEFINED = re.compile(r"= ?(default|delete)\b|Member operator(==|=)\(|Member ~")


def doxygen(folder):
    """Runs Doxygen; returns its warnings as (file, line, text)."""
    settings = (ROOT / "scripts/site/Doxyfile").read_text() + f'OUTPUT_DIRECTORY = "{folder}"\n'
    run = subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT, capture_output=True, check=True)
    for line in run.stderr.splitlines():
        match = re.match(r"(?:warning: )?(\S+?):(\d+): (?:warning: )?(.*)", line)
        if match and DEFINED.search(match[3]):
            continue
        if match:
            name = match[1].removeprefix(f"{ROOT}/")
            yield name, int(match[2]), match[3]
        elif line.strip():
            yield "lib", 0, line.strip()


def text_of(member):
    parts = ("briefdescription", "detaileddescription", "inbodydescription")
    return " ".join("".join(part.itertext()) for name in parts for part in member.findall(name))


def unnamed_parameters(folder):
    """Yields (file, line, text) for parameters that their function's contract does not name."""
    for file in sorted(pathlib.Path(folder, "xml").glob("*.xml")):
        for member in ElementTree.parse(file).getroot().iter("memberdef"):
            if member.get("kind") != "function" or member.get("prot") == "private" or member.find("reimplements") is not None:
                continue
            contract = text_of(member)
            if not contract.strip() or member.findtext("name").startswith("operator"):
                continue
            names = [name.text for name in member.findall("param/declname")]
            missing = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", contract)]
            place = member.find("location")
            if missing and place is not None:
                yield (place.get("declfile") or place.get("file")), int(place.get("declline") or place.get("line")), (
                    f"the contract of {member.findtext('name')} does not name {', '.join(missing)}")


def undocumented_in_namespaces(folder):
    """Yields (file, line, text) for members of namespaces without a contract, of which Doxygen does not warn."""
    for file in sorted(pathlib.Path(folder, "xml").glob("namespace*.xml")):
        members = list(ElementTree.parse(file).getroot().iter("memberdef"))
        # An overload for another type of number follows one that has the contract.
        documented = {member.findtext("name") for member in members if text_of(member).strip()}
        for member in members:
            name, place = member.findtext("name"), member.find("location")
            if place is None or name.startswith(("operator", "@")) or name in documented:
                continue
            yield (place.get("declfile") or place.get("file")), int(place.get("declline") or place.get("line")), (
                f"{member.get('kind')} {name} is not documented.")


def main():
    wanted = [name.rstrip("/") for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        findings = set(doxygen(folder)) | set(unnamed_parameters(folder)) | set(undocumented_in_namespaces(folder))
    shown = sorted(f for f in findings if not wanted or any(f[0] == w or f[0].startswith(w + "/") for w in wanted))
    for name, line, text in shown:
        print(f"{name}:{line}: {text}")
    print(f"contracts: {len(shown)} findings", file=sys.stderr)
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
