#!/bin/sh
# Build the documentation site into build/site, or serve it: sh scripts/docs.sh build|serve.
# The tools have an environment of their own, .venv-docs, made when it is first needed.
set -eu
cd "$(dirname "$0")/.."

VENV=.venv-docs
STAMP=$VENV/penstock-docs

wanted() { cat requirements/docs.txt scripts/docs.sh | cksum; }

if [ ! -f "$STAMP" ] || [ "$(cat "$STAMP")" != "$(wanted)" ]; then
  printf 'docs: installing the locked packages into %s\n' "$VENV" >&2
  .venv/bin/python -m venv --clear "$VENV"
  "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
    --require-hashes -r requirements/docs.txt
  wanted >"$STAMP"
fi

export NO_MKDOCS_2_WARNING=1 # the releases are pinned; decision 37 says what follows them
case "${1:-build}" in
  build)
    "$VENV/bin/mkdocs" build --strict --clean
    if grep -rlE '<(script|link|img|iframe)[^>]+(src|href)="(https?:)?//' --include='*.html' build/site; then
      printf 'docs: these pages load something from the web\n' >&2
      exit 1
    fi
    printf 'docs: open build/site/index.html (make docs-serve has the search as well)\n' >&2
    ;;
  serve) exec "$VENV/bin/mkdocs" serve --no-strict --dev-addr "${2:-127.0.0.1:8000}" ;;
  *)
    printf 'docs: there is no %s; say build or serve\n' "$1" >&2
    exit 2
    ;;
esac
