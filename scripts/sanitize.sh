#!/usr/bin/env bash
# Builds the compiled core with sanitizers and runs the tests that call it, and the fuzzer:
# ASan and UBSan find reads astray and undefined behaviour, TSan finds races of our threads.
#
#   scripts/sanitize.sh [address] [thread]     both, unless one is named
#
# PYTHON   an interpreter with the test dependencies and nanobind
# CXX      g++, or another with the libraries of the sanitizers
# TIME     minutes that the tests of one sanitizer may take (with ASan they took 21 on two busy cores)
# MINUTES  of the fuzzer, for each sanitizer
# SEED     of the fuzzer
# TESTS    the tests to run
# BUILD    where to build
# JOBS     compilers at a time
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
python=$(realpath -s "${PYTHON:-.venv/bin/python}")
compiler=${CXX:-g++}
limit=${TIME:-60}
minutes=${MINUTES:-10}
seed=${SEED:-0}
build=$(realpath -m "${BUILD:-build}")
jobs=${JOBS:-2}
read -r -a tests <<<"${TESTS:-$(echo tests/backends/native/test_native*.py)}"
kinds=("$@")
[ $# -gt 0 ] || kinds=(address thread)

needs() {
  echo "sanitize.sh needs g++ with libasan, libubsan and libtsan, CMake, Ninja, setarch and a" \
    "PYTHON with the test dependencies and nanobind; missing: $1 (or run: make sanitize)" >&2
  exit 2
}
# The sanitizer's library comes first in the process, then that of C++, whose exceptions it watches.
library() { "$compiler" -print-file-name="$1"; }

for tool in "$compiler" cmake ninja setarch timeout; do
  command -v "$tool" >/dev/null || needs "$tool"
done
for name in libasan.so libubsan.so libtsan.so; do
  [ -e "$(library "$name")" ] || needs "$name"
done
"$python" -c 'import hypothesis, nanobind, pytest, pytest_timeout, scipy, sklearn' 2>/dev/null ||
  needs "$python with its packages"

# The interpreter of the virtual environment would load an editable install, which finds its own
# core first. Its base does not, and takes the same packages from PYTHONPATH.
base=$("$python" -c 'import sys; print(sys._base_executable)')
packages=$("$python" -c 'import sys; print(":".join(p for p in sys.path if "-packages" in p))')

build_core() { # kind: a package in $build/sanitize-<kind>/tree, its core built with the sanitizer
  local at=$build/sanitize-$1
  cmake -S . -B "$at" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DMERCER_SANITIZE="$1" \
    -DPython_EXECUTABLE="$python" >/dev/null
  cmake --build "$at" -j "$jobs"
  rm -rf "$at/tree" "$at/reports"
  mkdir -p "$at/tree/mercer" "$at/reports"
  find "$root/src/mercer" -mindepth 1 -maxdepth 1 ! -name '_native*.so' \
    -exec ln -s -t "$at/tree/mercer" {} +
  cp "$at"/_native*.so "$at/tree/mercer/"
}

inside() { # kind minutes command...: with the core of that kind
  local kind=$1 at=$build/sanitize-$1 most=$2
  shift 2
  # Reports go to files: tests start processes whose output they keep for themselves.
  local settings=(PYTHONPATH="$at/tree:$packages" OPENBLAS_NUM_THREADS=1 PYTHONMALLOC=malloc)
  local log=log_path=$at/reports/report
  if [ "$kind" = address ]; then
    # Python keeps what it allocates; sizes that no machine has are for the core to refuse
    settings+=(LD_PRELOAD="$(library libasan.so) $(library libstdc++.so)"
      ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:handle_segv=1:$log
      UBSAN_OPTIONS=print_stacktrace=1:$log)
    timeout "${most}m" env "${settings[@]}" "$@"
  else
    settings+=(LD_PRELOAD="$(library libtsan.so) $(library libstdc++.so)"
      TSAN_OPTIONS="suppressions=$root/scripts/tsan.supp ignore_noninstrumented_modules=1 halt_on_error=1 die_after_fork=0 exitcode=66 $log")
    # its memory map does not suit randomised addresses
    timeout "${most}m" setarch "$(uname -m)" -R env "${settings[@]}" "$@"
  fi
}

failed=()
for kind in "${kinds[@]}"; do
  echo "== $kind: build"
  build_core "$kind"
  echo "== $kind: tests, $limit minutes at most"
  inside "$kind" "$limit" "$base" -m pytest -q -p no:cacheprovider -o timeout=1800 \
    -o faulthandler_timeout=1700 "${tests[@]}" || failed+=("$kind: tests ($?; 124: no time left)")
  echo "== $kind: $minutes minutes of the fuzzer, seed $seed"
  # its own clock ends it after the case at hand, which may take its patience
  (cd tests && inside "$kind" "$("$python" -c "print($minutes + 15)")" "$base" -m fuzz --minutes "$minutes" \
    --seed "$seed" --patience 600) || failed+=("$kind: the fuzzer found something")
  reports=("$build/sanitize-$kind/reports"/*)
  if [ -e "${reports[0]}" ]; then
    cat "${reports[@]}"
    failed+=("$kind: ${#reports[@]} reports of the sanitizer, in $build/sanitize-$kind/reports")
  fi
done
[ ${#failed[@]} -eq 0 ] || { printf 'FAILED %s\n' "${failed[@]}"; exit 1; }
echo "Nothing was found."
