"""What the stages of the calculator pilot share: policy, sampler, gateway, harness, PPO and records."""

import os

# Before anything imports jax: the pilot is proven on CPU, and an accelerator would be another result.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
