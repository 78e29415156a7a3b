#!/usr/bin/env bash
# Builds the source archive and the wheels of this platform, and checks them: one wheel for Python
# 3.11, one with the stable ABI for 3.12 and newer.
#
#   scripts/build_wheels.sh [PYTHON ...]     python3.11 and python3.12, unless others are named
#
# Each interpreter needs `build`, and the packages that pyproject.toml builds with if ISOLATED=no.
#
# OUT        where they go: dist
# ISOLATED   no: build with what the interpreters have, without a network
# CHECK      further interpreters that the wheels are tried with, besides those that build them; each
#            with venv, and an index (or pip's settings) that has Mercer's dependencies
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(realpath -m "${OUT:-dist}")
pythons=("$@")
[ $# -gt 0 ] || pythons=(python3.11 python3.12)
read -r -a others <<<"${CHECK:-}"
build_options=()
[ "${ISOLATED:-yes}" = yes ] || build_options=(--no-isolation)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
missing=()

has() { # tool: whether it is there; noted where not
  command -v "$1" >/dev/null && return
  missing+=("$1")
  return 1
}

mkdir -p "$out"
"${pythons[0]}" -m build --sdist "${build_options[@]}" --outdir "$out" .
for python in "${pythons[@]}"; do
  "$python" -m build --wheel "${build_options[@]}" --outdir "$scratch/built" .
done

# On Linux the tag says how old a system may be; auditwheel finds it out, and copies what is missing.
if [ "$(uname)" = Linux ] && has auditwheel && has patchelf; then
  for wheel in "$scratch"/built/*.whl; do
    auditwheel show "$wheel"
    auditwheel repair "$wheel" --wheel-dir "$out"
  done
else
  cp "$scratch"/built/*.whl "$out"
fi

if has abi3audit; then
  find "$out" -name '*-abi3-*.whl' -exec abi3audit --strict --verbose {} +
fi

for python in "${pythons[@]}" "${others[@]}"; do
  at=$scratch/venv-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  [ ! -e "$at" ] || continue
  "$python" -m venv "$at"
  "$at/bin/python" -m pip install --quiet numpy scipy scikit-learn threadpoolctl
  "$at/bin/python" -m pip install --quiet --no-index --no-deps --find-links "$out" mercer
  (cd "$scratch" && "$at/bin/python" "$OLDPWD/scripts/check_wheel.py")
done

ls -l "$out"
[ ${#missing[@]} -eq 0 ] || echo "Not checked, since these are not here: ${missing[*]}"
