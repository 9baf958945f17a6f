"""DP-SGD for PyTorch: sampling, per-sample clipping, noise and accounting as one object.

    training.py          `make_private`, `preview_private`, `resume`: arguments, checks, the charge before the first row
    inputs.py            model, optimizer, rows, units and loader, checked before the charge
    schedule.py          sampling rate, noise and clip of every step, and the event of all of them
    private_training.py  the object that the caller loops over: batches, losses, steps, state
    losses.py            checks of what a step takes: losses of rows, and a loss on public data
    sampling.py          Poisson samples of units, and the rows of the data
    loader_passes.py     passes over a caller's loader, which begin where charged ones do
    step_noise.py        the noise of a step, with canaries and the count of adaptive clipping
    model_checks.py      models that are refused: layers that mix samples, change their weights, or are compiled
    model_owners.py      which training has the hooks of a model
    rehearsal.py         whether a model computes each row apart, tried on made-up rows
    made_up.py           made-up rows and weights, and passes that change nothing
    clipping.py          PerSampleClipper: hooks, one backward pass, clip factors
    layer_rules.py       which rule a layer of torch.nn has
    layers.py            per-layer rules: squared norms and weighted sums of per-sample gradients
    recurrent.py         LSTM and GRU as unrolled loops whose gate gradients are kept
    attention.py         multi-head attention as four linear maps
    rounding.py          bounds on floating-point errors of norms and sums
    matrix_noise.py      DP-FTRL: noise that is cancelled in part by that of later steps
    processes.py         one process, or a group of torch.distributed
    checkpoints.py       the state of a training in one file
    interrupts.py        Ctrl-C during a step
    canaries.py          the one-run audit of a training
    cards.py             a training in plain language

The noise is `tacit.mechanisms.bulk_gaussian`.
"""
