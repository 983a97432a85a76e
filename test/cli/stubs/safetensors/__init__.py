"""As much of safetensors as examples/prune-in-stages.py asks for."""
