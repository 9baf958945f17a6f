"""DP-SGD for PyTorch: sampling, per-sample clipping, noise and accounting as one object.

    layers      per-layer rules: squared norms and weighted sums of per-sample gradients
    recurrent   LSTM and GRU as unrolled loops whose gate gradients are kept
    attention   multi-head attention as four linear maps
    clipping    PerSampleClipper: hooks, one backward pass, clip factors
    rounding    bounds on floating-point errors of norms and sums

The noise is `tacit.mechanisms.bulk_gaussian`.
"""
