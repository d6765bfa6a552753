"""The Locally Adaptive Normal Distribution."""
