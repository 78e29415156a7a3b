#!/usr/bin/env bash
# What a newcomer does: an empty environment, the library installed as docs/install.md says, and the
# quickstart typed in verbatim. PYTHON= says which Python.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh/venv"
"$fresh/venv/bin/python" -m pip install --quiet ".[plot]" pandas
cp docs/extensions/snippets.py docs/install.md docs/quickstart.md "$fresh"
cd "$fresh"  # away from the sources: what runs is what was installed
env -u PYTHONPATH venv/bin/python snippets.py install.md quickstart.md
