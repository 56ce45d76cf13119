#!/bin/sh
# Runs a command in a container with the newest supported Python: `make newest`.
#
# Variables of the environment:
#   COMMAND       what to run in a copy of the checkout; `make test` by default
#   JAXLIB        the version of jaxlib to install; by default the newest that pyproject.toml allows
#   PYTHON_IMAGE  the image of the container. It needs Python, make, git and a C++ compiler, which
#                 the slim images do not have.
#
# The checkout is mounted read-only and copied inside the container, so nothing in it changes and
# its own environments, made for another Python, are not used.

set -eu

image=${PYTHON_IMAGE:-python:3.14}
task=${COMMAND:-make test}
jaxlib=${JAXLIB:-}
checkout=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)

engine=
silent=
for candidate in docker podman; do
    if command -v "$candidate" >/dev/null 2>&1; then
        # The program can be installed while its daemon is not running.
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
make newest: this needs docker or podman. ${silent:-Neither is installed. }
To do the same without a container, install Python 3.14, for example by one of
    uv python install 3.14
    pyenv install 3.14
and run the tests in an environment beside your own:
    make PYTHON=python3.14 VENV=.venv-3.14$pin test
END
    exit 1
fi

# Arguments: the checkout, the folder for its copy, the command. The owner of the copy is the user
# of the container, or git would refuse to read it.
inside='
set -eu
mkdir -p "$2"
tar -C "$1" --exclude=./.venv --exclude="./.venv-*" --exclude=./out --exclude=node_modules \
    -cf - . | tar -C "$2" --no-same-owner -xf -
cd "$2"
python3 --version
exec sh -c "$3"
'

# --init reaps processes whose parents the tests end. Without label=disable, SELinux would keep the
# container from reading the checkout.
exec "$engine" run --rm --init --security-opt label=disable \
    --volume "$checkout:/checkout:ro" --env "JAXLIB=$jaxlib" "$image" \
    sh -c "$inside" sh /checkout /tmp/minijax "$task"
