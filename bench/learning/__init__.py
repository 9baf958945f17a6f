"""Benchmarks of private machine learning, one module a method."""
