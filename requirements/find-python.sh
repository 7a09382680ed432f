#!/bin/sh
# Print a Python that is new enough and can make virtual environments: $1 if given, else the first that is found.
check='import sys, ensurepip, venv; raise SystemExit(sys.version_info < (3, 11))'

if [ -n "$1" ]; then
    "$1" -c "$check" 2>/dev/null && echo "$1" && exit 0
    echo "$1 is not Python 3.11 or newer with the modules venv and ensurepip." >&2
    exit 1
fi
for python in python3 python python3.13 python3.12 python3.11 /usr/bin/python3; do
    "$python" -c "$check" 2>/dev/null && echo "$python" && exit 0
done
echo "No Python 3.11 or newer with the modules venv and ensurepip was found." >&2
echo "Install one (on Debian or Ubuntu: apt install python3 python3-venv), or name one: make PYTHON=/path/to/python3 ..." >&2
exit 1
