#!/bin/sh
# Make .venv and fill the jar cache. Run by `make setup`; safe to interrupt and to run again.
# Needs Python >= 3.11 and the package registries. $PYTHON names an interpreter of your choice.
set -eu
cd "$(dirname "$0")/.."

VENV=.venv
STAMP=$VENV/penstock-setup

say() { printf '%s\n' "setup: $*" >&2; }
fail() {
  say "$1"
  [ -z "${2:-}" ] || say "hint: $2"
  exit 1
}

# The first interpreter that is new enough and can make virtual environments. A name may be there
# and not run (version switchers), or run and lack venv (Debian ships it apart).
find_python() {
  bare=
  for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
    if "$name" -c 'import venv, ensurepip' >/dev/null 2>&1; then
      printf '%s\n' "$name"
      return
    fi
    bare=${bare:-$name}
  done
  [ -z "$bare" ] || fail "$bare cannot make virtual environments (no venv or ensurepip)" \
    "install it: on Debian and Ubuntu, apt install python3-venv"
  fail "no Python 3.11 or newer among ${PYTHON:-python3, python3.14 ... python3.11}" \
    "install one, or run: make setup PYTHON=/path/to/python"
}

install() {
  "$VENV/bin/uv" pip install --quiet --python "$VENV/bin/python" \
    --build-constraints requirements/build.txt "$@"
}

# What the installed environment depends on, in one number.
wanted() {
  cat requirements/bootstrap.txt requirements/build.txt requirements/development.txt \
    pyproject.toml scripts/setup.sh | cksum
}

make_environment() {
  if ! "$VENV/bin/python" -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' \
      >/dev/null 2>&1; then
    python=$(find_python) || exit 1
    say "making $VENV with $("$python" --version)"
    "$python" -m venv --clear "$VENV"
  fi
  say "installing the locked packages"
  "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
    --require-hashes -r requirements/bootstrap.txt
  # uv asks the system which certificates to trust, as pip does, and where pip gets packages.
  export UV_SYSTEM_CERTS=true
  if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
    index=${PIP_INDEX_URL:-$("$VENV/bin/python" -m pip config get global.index-url 2>/dev/null || :)}
    [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
  fi
  install --require-hashes -r requirements/development.txt
  install --no-deps --editable .
  wanted >"$STAMP"
}

has_java() {
  "$VENV/bin/python" -c 'from penstock.machine.java.java import find_java; find_java()' 2>/dev/null
}

# Both questions in one process: this is all that a second run costs.
is_complete() {
  "$VENV/bin/python" -c '
import sys
from penstock.machine.java.jars import missing_jars
from penstock.machine.java.java import find_java
find_java()
sys.exit(bool(missing_jars()))' 2>/dev/null
}

if [ ! -f "$STAMP" ] || [ "$(cat "$STAMP")" != "$(wanted)" ]; then
  make_environment
fi
if ! is_complete; then
  if ! has_java; then
    say "no Java 17 or newer: installing one as a package"
    UV_SYSTEM_CERTS=true install --require-hashes -r requirements/java.txt
  fi
  "$VENV/bin/penstock" jars fetch
  is_complete || fail "the set-up did not complete" "run: .venv/bin/penstock doctor"
fi
