"""The neural network of section 2 and its parallel training (section 3.2)."""
