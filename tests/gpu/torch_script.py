"""A PyTorch script that knows nothing of ergotune (scripts/gpu-check, step capture)."""
import torch

torch.manual_seed(1)
x = torch.randn(2048, 1024, device="cuda")
w = torch.randn(1024, 512, device="cuda")
for _ in range(3):
    y = torch.relu(x @ w + 0.5)
    z = torch.softmax(y, dim=1)
scaled = (z * 3).sum(dim=0)
index = torch.arange(0, 2048, 3, device="cuda")
picked = torch.index_select(x, 0, index)
torch.cuda.synchronize()
print(f"sum {scaled.sum().item():.3f} {picked.abs().sum().item():.1f}")
