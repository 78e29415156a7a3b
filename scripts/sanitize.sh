#!/usr/bin/env bash
# Builds the compiled core with sanitizers and runs the tests that call it, and the fuzzer:
# ASan and UBSan find reads astray and undefined behaviour, TSan finds races of our threads.
#
#   scripts/sanitize.sh [address] [thread]     both, unless one is named
#
# PYTHON   an interpreter with the test dependencies, nanobind, CMake and Ninja
# MINUTES  of the fuzzer, for each sanitizer
# SEED     of the fuzzer
# TESTS    the tests to run
# BUILD    where to build
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-.venv/bin/python}
minutes=${MINUTES:-10}
seed=${SEED:-0}
build=$(realpath -m "${BUILD:-build}")
root=$PWD
jobs=${JOBS:-2}
read -r -a tests <<<"${TESTS:-$(echo tests/backends/test_native*.py)}"
compiler=${CXX:-g++}
kinds=("$@")
[ $# -gt 0 ] || kinds=(address thread)

# The interpreter of the virtual environment would load an editable install, which finds its own
# core first. Its base does not, and takes the same packages from PYTHONPATH.
base=$("$python" -c 'import sys; print(sys._base_executable)')
packages=$("$python" -c 'import sys; print(":".join(p for p in sys.path if "site-packages" in p))')

build_core() { # kind: a package in $build/sanitize-<kind>/tree, its core built with the sanitizer
  local at=$build/sanitize-$1
  cmake -S . -B "$at" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DMERCER_SANITIZE="$1" \
    -DPython_EXECUTABLE="$python" >/dev/null
  cmake --build "$at" -j "$jobs"
  rm -rf "$at/tree"
  mkdir -p "$at/tree/mercer"
  find "$root/src/mercer" -mindepth 1 -maxdepth 1 ! -name '_native*.so' \
    -exec ln -s -t "$at/tree/mercer" {} +
  cp "$at"/_native*.so "$at/tree/mercer/"
}

# The sanitizer's library comes first in the process, then that of C++, whose exceptions it watches.
library() { "$compiler" -print-file-name="$1"; }

inside() { # kind command...: with the core of that kind
  local kind=$1
  shift
  local settings=(PYTHONPATH="$build/sanitize-$kind/tree:$packages" OPENBLAS_NUM_THREADS=1
    PYTHONMALLOC=malloc)
  if [ "$kind" = address ]; then
    # Python keeps what it allocates; sizes that no machine has are for the core to refuse
    settings+=(LD_PRELOAD="$(library libasan.so) $(library libstdc++.so)"
      ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:handle_segv=1
      UBSAN_OPTIONS=print_stacktrace=1)
    env "${settings[@]}" "$@"
  else
    settings+=(LD_PRELOAD="$(library libtsan.so) $(library libstdc++.so)"
      TSAN_OPTIONS="suppressions=$root/scripts/tsan.supp ignore_noninstrumented_modules=1 halt_on_error=1 exitcode=66")
    # its memory map does not suit randomised addresses
    setarch "$(uname -m)" -R env "${settings[@]}" "$@"
  fi
}

for kind in "${kinds[@]}"; do
  echo "== $kind: build"
  build_core "$kind"
  echo "== $kind: tests"
  inside "$kind" "$base" -m pytest -q -p no:cacheprovider -o timeout=1800 \
    -o faulthandler_timeout=1700 "${tests[@]}"
  if [ -f tests/fuzz/__main__.py ]; then
    echo "== $kind: $minutes minutes of the fuzzer, seed $seed"
    (cd tests && inside "$kind" "$base" -m fuzz --minutes "$minutes" --seed "$seed")
  else
    echo "== $kind: there is no fuzzer in tests/fuzz"
  fi
done
