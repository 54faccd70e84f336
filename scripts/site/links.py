#!/usr/bin/env python3
"""Checks a folder of HTML pages: every link and its anchor exist, and nothing is loaded from elsewhere.

  scripts/site/links.py FOLDER

Prints PAGE: WHAT for each finding, the numbers on stderr, and fails if there is one.
"""
import html.parser
import pathlib
import sys
import urllib.parse

# Doxygen links to its list of nested classes even if all of them are private.
DOXYGEN = {"nested-classes"}
LOADED = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src"), ("object", "data"), ("source", "src")}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        for name in ("id", "name"):
            if values.get(name):
                self.anchors.add(values[name])
        for name in ("href", "src", "data"):
            value = values.get(name)
            if not value:
                continue
            if (tag, name) in LOADED and value.startswith(("http:", "https:", "//")) and values.get("rel") not in ("canonical", "author"):
                self.loaded.append(value)
            if tag != "form":
                self.links.append(value)


def main(folder):
    root = pathlib.Path(folder).resolve()
    pages = {path: Page(path.read_text(errors="replace")) for path in sorted(root.rglob("*.html"))}
    findings = links = 0
    for path, page in pages.items():
        # The page of errors is read at any address.
        if path.name == "404.html":
            continue
        wrong = [f"loads {url}" for url in page.loaded]
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                wrong.append(f"no file {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors and anchor not in DOXYGEN:
                wrong.append(f"no anchor {link}")
        for text in dict.fromkeys(wrong):
            print(f"{path.relative_to(root)}: {text}")
            findings += 1
    print(f"links: {len(pages)} pages, {links} links, {findings} findings", file=sys.stderr)
    return 1 if findings or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
