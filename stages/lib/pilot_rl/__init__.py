"""What the stages of the calculator pilot share: policy, sampler, gateway, harness, PPO and records."""
