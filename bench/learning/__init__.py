"""Benchmarks of private machine learning, one module a question."""
