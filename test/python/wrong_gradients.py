# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What comparisons of gradients have to refuse."""


def largest_halved(gradient):
    halved = gradient.clone()
    halved.view(-1)[gradient.abs().argmax()] /= 2
    return halved


def all_nan(gradient):
    return gradient * float("nan")
