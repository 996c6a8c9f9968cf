# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""te kernels in C: header and shared object of two kernels, in one program."""

import math
import shutil
import subprocess

import pytest

from weft import te

MAIN = """\
#include "fmm.h"
#include "soft.h"
#include <math.h>
#include <stdio.h>

int main(int count, char **paths) {
  static float x[9 * 7], y[7 * 33], z[9 * 33], p[9 * 33];
  if (fmm(x, y, z) == 0 || fmm_load("/nowhere.so") == 0)
    return 1; /* it is not loaded */
  if (count != 3 || fmm_load(paths[1]) || soft_load(paths[2]))
    return 2;
  for (int i = 0; i < 9 * 7; ++i)
    x[i] = (float)(i % 5);
  for (int i = 0; i < 7 * 33; ++i)
    y[i] = (float)(i % 3) - 1;
  for (int round = 0; round < 2; ++round)
    if (fmm(x, y, z) || soft(z, p))
      return 3;
  for (int i = 0; i < 9; ++i) {
    double total = 0;
    for (int j = 0; j < 33; ++j) {
      double sum = 0;
      for (int k = 0; k < 7; ++k)
        sum += x[i * 7 + k] * y[k * 33 + j];
      if (sum != z[i * 33 + j])
        return 4;
      total += p[i * 33 + j];
    }
    if (fabs(total - 1) > 1e-5)
      return 5;
  }
  puts("equal");
  return 0;
}
"""


def kernels():
    x, y = te.placeholder((9, 7), name="x"), te.placeholder((7, 33), name="y")
    r = te.reduce_axis((0, 7), "r")
    z = te.compute((9, 33), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "z")
    a = te.placeholder((9, 33), name="a")
    b = te.reduce_axis((0, 33), "b")
    e = te.compute((9, 33), lambda i, j: te.exp(a[i, j]), "e")
    d = te.compute((9,), lambda i: te.sum(e[i, b], axis=b), "d")
    p = te.compute((9, 33), lambda i, j: e[i, j] / d[i], "p")
    s = te.create_schedule(z)
    s[z].parallel(z.op.axis[0])
    s[z].vectorize(z.op.axis[1])
    return te.build(s, [x, y, z], "fmm"), te.build(te.create_schedule(p), [a, p], "soft")


@pytest.mark.parametrize("compiler", ["cc", "clang-22"])
def test_two_kernels_in_one_c_program(tmp_path, compiler):
    if shutil.which(compiler) is None:
        compiler = "clang-22"
    libraries = [str(kernel.export(tmp_path)[0]) for kernel in kernels()]
    (tmp_path / "main.c").write_text(MAIN)
    flags = "-std=c99 -pedantic -Wall -Wextra -Werror -O1".split()
    command = [compiler, *flags, "main.c", "-o", "main", "-lm", "-ldl"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main", *libraries], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "equal\n")


def test_a_program_that_links_no_mathematics(tmp_path):
    x = te.placeholder((3,), "float64", "x")
    z = te.compute((3,), lambda i: te.sin(x[i]) + te.fmod(x[i], 0.75), "z")
    library, _ = te.build(z, [x, z], "waves").export(tmp_path)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "waves.h"\n'
        "int main(int count, char **arguments) {\n"
        "  const double x[3] = {2.0, -1e300, 1e22};\n  double z[3];\n"
        "  if (count != 2 || waves_load(arguments[1]) || waves(x, z))\n    return 1;\n"
        '  printf("%.17g %.17g %.17g", z[0], z[1], z[2]);\n  return 0;\n}\n'
    )
    flags = ["-std=c99", "-Wall", "-Werror", "main.c", "-o", "main", "-ldl"]
    subprocess.run(["clang-22", *flags], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main", str(library)], capture_output=True, text=True)
    assert done.returncode == 0
    expected = [math.sin(each) + math.fmod(each, 0.75) for each in (2.0, -1e300, 1e22)]
    assert [float(each) for each in done.stdout.split()] == pytest.approx(expected, rel=1e-14)


def test_the_header_says_what_it_computes(tmp_path):
    _, header = kernels()[0].export(tmp_path)
    text = header.read_text()
    assert " *   z[i, j] = sum(x[i, r] * y[r, j], axis=r)  for i < 9, j < 33, r < 7\n" in text
    assert "static inline int fmm(const float *x, const float *y, float *z)" in text


def test_the_abi_in_the_header_is_the_runtimes():
    from pathlib import Path

    abi = (Path(__file__).parents[2] / "runtime" / "Abi.h").read_text()
    assert "#define WEFT_ABI_VERSION 2u" in abi and "#define WEFT_ABI_MAGIC 0x54464557u" in abi
