"""A small PyTorch model: convolution, normalisation, matrix products, softmax, and a step of training (scripts/gpu-capture)."""
import sys

import torch
from torch import nn

torch.manual_seed(1)
torch.backends.cudnn.deterministic = True
model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 16 * 16, 512),
                      nn.LayerNorm(512), nn.GELU(), nn.Linear(512, 512), nn.Softmax(dim=1)).cuda()
optimizer = torch.optim.Adam(model.parameters(), foreach=True)
x, target = torch.randn(256, 3, 32, 32, device="cuda"), torch.rand(256, 512, device="cuda")
begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
for repeats in (1, 100):
    begun.record()
    for _ in range(repeats):
        with torch.no_grad():
            y = model(x)
    ended.record()
loss = nn.functional.mse_loss(model(x), target)
loss.backward()
optimizer.step()
print(f"sum {y.double().sum().item():.6f} {y.double().square().sum().item():.9f} {loss.item():.6f}")
print(f"launch {begun.elapsed_time(ended) / 100 * 1e-3:.4g} s", file=sys.stderr)
