#!/bin/sh
# Runs a command in a container with the newest supported Python: `make newest`.
#
# Environment variables:
#   COMMAND       the command to run in a copy of the checkout; `make test` by default
#   JAXLIB        the version of jaxlib to install; by default the newest that pyproject.toml allows
#   PYTHON_IMAGE  the image of the container; python:3.14 by default. It must have Python, make, git
#                 and a C++ compiler; the slim images have only Python.
#
# The checkout is mounted read-only and copied inside the container, so the command cannot change
# it. Its virtual environments are not copied, because they were made for another Python.

set -eu

image=${PYTHON_IMAGE:-python:3.14}
task=${COMMAND:-make test}
jaxlib=${JAXLIB:-}
checkout=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)

engine=
silent=
for candidate in docker podman; do
    if command -v "$candidate" >/dev/null 2>&1; then
        # An installed engine cannot be used if its daemon is not running; `info` fails then.
        if "$candidate" info >/dev/null 2>&1; then
            engine=$candidate
            break
        fi
        silent="$silent$candidate is installed, but '$candidate info' fails. "
    fi
done

if [ -z "$engine" ]; then
    pin=
    if [ -n "$jaxlib" ]; then pin=" JAXLIB=$jaxlib"; fi
    cat >&2 <<END
make newest requires docker or podman. ${silent:-Neither is installed. }
To run the tests without a container, install Python 3.14, for example with one of
    uv python install 3.14
    pyenv install 3.14
and run them in a separate virtual environment:
    make PYTHON=python3.14 VENV=.venv-3.14$pin test
END
    exit 1
fi

# The script that runs in the container. Its arguments are the checkout, the folder for the copy,
# and the command. The copy belongs to the user of the container, because git refuses to read a
# checkout that belongs to another user.
inside='
set -eu
mkdir -p "$2"
tar -C "$1" --exclude=./.venv --exclude="./.venv-*" --exclude=./out --exclude=node_modules \
    -cf - . | tar -C "$2" --no-same-owner -xf -
cd "$2"
python3 --version
exec sh -c "$3"
'

# --init reaps orphaned processes, which some tests leave behind by killing their parents. Without
# label=disable, SELinux prevents the container from reading the checkout.
exec "$engine" run --rm --init --security-opt label=disable \
    --volume "$checkout:/checkout:ro" --env "JAXLIB=$jaxlib" "$image" \
    sh -c "$inside" sh /checkout /tmp/minijax "$task"
