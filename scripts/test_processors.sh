#!/usr/bin/env bash
# Run the tests marked `numerics` as another processor would: OpenBLAS chooses its kernels by
# processor, and their sums differ in the last bits. OPENBLAS_CORETYPE chooses the kernels.
#
#   scripts/test_processors.sh [--pair] [KERNELS ...]     default: all six
#
# --pair takes two kernels, by the number of the commit, so that three builds in a row cover all six.
# PYTHON= is the interpreter, WORKERS= the number of processes. Kernels with instructions that this
# computer lacks are left out, by name.
set -uo pipefail
cd "$(dirname "$0")/.."
all=(Haswell Zen SkylakeX Sandybridge Nehalem Prescott)

kernels=("$@")
if [ "${1:-}" = --pair ]; then
  first=$((2 * ($(git rev-list --count HEAD) % 3)))
  kernels=("${all[@]:first:2}")
elif [ $# -eq 0 ]; then
  kernels=("${all[@]}")
fi

runs_here() { # whether this computer has the instructions of a kernel
  local needed
  case $1 in
    SkylakeX) needed=avx512f ;;
    Haswell | Zen) needed=avx2 ;;
    Sandybridge) needed=avx ;;
    *) return 0 ;;
  esac
  [ ! -r /proc/cpuinfo ] || grep -qw "$needed" /proc/cpuinfo
}

failed=()
for kernel in "${kernels[@]}"; do
  if ! runs_here "$kernel"; then
    echo "$kernel: left out, this computer lacks its instructions"
    continue
  fi
  echo "== OPENBLAS_CORETYPE=$kernel"
  OPENBLAS_CORETYPE=$kernel OPENBLAS_NUM_THREADS=1 "${PYTHON:-python3}" -m pytest -q \
    -n "${WORKERS:-2}" -m numerics tests || failed+=("$kernel")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed with the kernels of: ${failed[*]}"; exit 1; }
