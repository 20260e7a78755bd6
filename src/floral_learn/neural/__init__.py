"""Networks: batched baselines and FLORAL on learned features (needs torch)."""
