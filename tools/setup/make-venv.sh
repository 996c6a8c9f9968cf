#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# make-venv.sh FOLDER: a virtual environment of Python 3.11 that can build extensions.
set -eu

usable='
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(sys.version_info[:2] != (3, 11) or not os.path.exists(header))
'
for python in python3 python3.11 /usr/bin/python3.11; do
  if "$python" -c "$usable" >/dev/null 2>&1; then
    rm -rf "$1"
    exec "$python" -m venv "$1"
  fi
done
echo "weft: expected a Python 3.11 with venv and headers (python3-venv, python3-dev), found none" >&2
exit 1
