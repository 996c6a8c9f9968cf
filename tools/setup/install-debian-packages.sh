#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs those packages of apt-packages.txt that the machine lacks.
set -eu
cd "$(dirname "$0")/../.."

fail() {
  echo "weft: $*" >&2
  exit 1
}

command -v dpkg-query >/dev/null || fail "expected dpkg-query (Debian 12), found no such tool"

missing=""
for package in $(sed 's/#.*//' apt-packages.txt); do
  case $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true) in
    installed) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

command -v apt-get >/dev/null || fail "expected apt-get to install$missing, found no such tool"
if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null; then
  as_root="sudo"
else
  fail "expected root or sudo to install$missing, found neither"
fi

echo "weft: installing$missing"
$as_root apt-get update
$as_root env DEBIAN_FRONTEND=noninteractive \
  apt-get install --yes --no-install-recommends $missing ||
  fail "expected apt-get to install$missing (LLVM 22 needs the security suite of Debian 12)"
