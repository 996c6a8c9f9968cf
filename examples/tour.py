# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tour of docs/tour.md: compiles a small network, compares, looks inside."""

import torch

import weft


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(784, 128)
        self.out = torch.nn.Linear(128, 10)

    def forward(self, x):
        hidden = torch.nn.functional.gelu(self.hidden(x))
        return self.out(hidden).softmax(-1)


torch.manual_seed(0)
model = Classifier().eval()
compiled = weft.compile(model)
x = torch.randn(64, 784)

with torch.no_grad():
    compiled(x)  # PyTorch runs the first call, and the program is compared with it
    print("largest difference:", (compiled(x) - model(x)).abs().max().item())
    for _ in range(100):
        compiled(x)
weft.report(compiled)
