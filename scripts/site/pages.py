#!/usr/bin/env python3
"""Gathers the project's pages for MkDocs.

  scripts/site/pages.py OUT

Copies all tracked pages and their pictures to OUT/pages, in the same folders, and writes OUT/mkdocs.yml. Changes only
what Python-Markdown reads differently from CommonMark, and links to files that are not pages.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = ("tests/data/", "tests/support/", "scripts/site/")
TOOLS = ("mask-viz", "attn-probe", "lm-train", "lm-score", "lm-write", "length-gen", "embed-fix", "droptoken", "tok", "ckpt", "ckpt-grow")

# Titles that say more than the page's own, in the list of all pages.
TITLES = {"README.md": "Start", "apps/guides/README.md": "All guides", "lib/store/README.md": "Checkpoint formats", "lib/README.md": "The library and its glossary"}


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in out.split("\0") if name and not name.startswith(LEFT_OUT) and (ROOT / name).exists())


def site_path(name):
    """MkDocs leaves out folders that begin with a dot."""
    return name.removeprefix(".")


def relinked(page, pages, copied):
    """A function that gives a link of `page` its target in the site; adds the files that must be copied to `copied`."""
    here = os.path.dirname(page)

    def replace(match):
        text, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(here, path))
        if full in pages or full.endswith((".svg", ".png")):
            new = os.path.relpath(site_path(full), os.path.dirname(site_path(page)))
        elif (ROOT / full).is_file():
            # Browsers show text files.
            copied.add(full)
            new = os.path.relpath(site_path(full) + ".txt", os.path.dirname(site_path(page)))
        elif (ROOT / full).is_dir():
            return text
        else:
            sys.exit(f"pages: {page}: no file {target}")
        return f"[{text}]({new}{'#' + anchor if anchor else ''})"

    return replace


def converted(text, relink):
    lines, fence, previous, open_text = [], None, "", False
    for line in text.split("\n"):
        mark = re.match(r"( *)(`{3,}|~{3,})", line)
        if fence is None and mark:
            fence = mark[2]
            if previous.strip() and not mark[1]:
                lines.append("")
        elif fence is not None:
            if line.strip() == fence:
                fence = None
            lines.append(line)
            previous = line
            continue
        else:
            if line.startswith("|"):
                # Python-Markdown does not split a row inside code, and keeps the backslash.
                line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
            item = re.match(r" *([-*+]|\d+\.) ", line)
            # Lists need an empty line before them, and twice the indentation.
            if item and previous.strip() and not open_text:
                lines.append("")
            if line.startswith("  "):
                line = " " * (len(line) - len(line.lstrip(" "))) + line
            open_text = bool(item) or (open_text and line.startswith("  "))
            # MkDocs leaves HTML as it is.
            line = re.sub(r'href="(?![a-z]+:)([^"#]*?)(README)?\.md', lambda m: f'href="{m[1]}{"index" if m[2] else ""}.html', line)
            line = re.sub(r"\[([^\]\[]*(?:\[[^\]]*\][^\]\[]*)*)\]\(([^()\s]+)\)", relink, line)
        lines.append(line)
        previous = line
    return "\n".join(lines)


def navigation(pages):
    def under(folder):
        return [page for page in pages if page.startswith(folder + "/") and page.count("/") == folder.count("/") + 1]

    layers = [line.split(":")[0] for line in (ROOT / "lib/LAYERS").read_text().splitlines() if line.strip() and not line.startswith("#")]
    groups = [
        ("Guides", ["apps/guides/README.md"] + [p for p in under("apps/guides") if not p.endswith("README.md")]),
        ("Tools", [f"apps/{tool}/README.md" for tool in TOOLS]),
        ("Reference", ["apps/mask-viz/gallery/README.md", "lib/store/README.md", "lib/README.md", "CHANGELOG.md"]),
        ("Experiments", [p for p in pages if p.startswith("scripts/experiments/")]),
    ]
    named = {"README.md"}.union(*(set(paths) for _, paths in groups))
    library = [f"lib/{layer}/README.md" for layer in layers if f"lib/{layer}/README.md" in pages and f"lib/{layer}/README.md" not in named]
    rest = sorted(set(pages) - named - set(library))
    return [("Library", library), ("Development", rest)], groups


def title(page):
    if page in TITLES:
        return TITLES[page]
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("# "):
            return line[2:].replace("`", "").strip()
    return page


def main():
    out = pathlib.Path(sys.argv[1])
    pages = tracked("*.md")
    copied = set()
    for page in pages:
        target = out / "pages" / site_path(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(converted((ROOT / page).read_text(), relinked(page, set(pages), copied)))
    for picture in tracked("*.svg", "*.png"):
        target = out / "pages" / site_path(picture)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / picture).read_bytes())
    for name in copied:
        target = out / "pages" / (site_path(name) + ".txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    last, first = navigation(pages)
    with open(out / "mkdocs.yml", "w") as settings:
        settings.write((ROOT / "scripts/site/mkdocs.yml").read_text())
        settings.write("docs_dir: pages\nsite_dir: site\nnav:\n  - Start: README.md\n")
        for group, members in first + last:
            settings.write(f"  - {group}:\n")
            for page in members:
                settings.write(f'    - "{title(page)}": {site_path(page)}\n')
        settings.write("  - API: api/index.html\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
