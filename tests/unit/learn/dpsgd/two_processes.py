"""One of two processes that train together; run by `test_processes` with the rank, a port and a folder."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import tacit
import tacit.learn
from tacit.privacy.errors import InvalidInput
from tests.support.trainings import model, optimizer, rows, train


def main() -> None:
    """Train on half of the rows, and write the weights and what this process knows."""
    rank, port, folder = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    dist.init_process_group("gloo", rank=rank, world_size=2)
    features, labels = rows(400)
    part = (features[rank::2], labels[rank::2])
    net = model(seed=rank)  # other weights at the start: those of rank 0 count
    options = {"delta": 1e-5, "batch_size": 40, "steps": 20, "clip": tacit.learn.AdaptiveClip()}
    budget = tacit.Budget(3.0, 1e-3) if rank == 0 else None
    refusals = []
    for wrong in ({"epsilon": 100.0, "distributed": True}, {"epsilon": 1.0}):
        try:
            tacit.learn.make_private(net, optimizer(net), part, budget=budget, **options, **wrong)
        except tacit.TacitError as error:
            refusals.append(type(error).__name__ if rank == 0 else isinstance(error, InvalidInput))
    own = optimizer(net)
    training = tacit.learn.make_private(
        net, own, part, epsilon=1.0, budget=budget, distributed=True, checkpoint=folder / "state", **options
    )
    train(training, 10)
    dist.barrier()
    again = model(seed=5)
    resumed = tacit.learn.resume(folder / "state", again, optimizer(again), part, budget=budget, distributed=True)
    train(resumed)
    correlated = tacit.learn.make_private(
        again,
        optimizer(again),
        part,
        noise_multiplier=2.0,
        delta=1e-5,
        batch_size=40,
        steps=12,
        bands=3,
        budget=tacit.Budget(30.0, 1e-3) if rank == 0 else None,
        distributed=True,
        checkpoint=folder / "correlated",
    )
    train(correlated, 5)
    dist.barrier()
    last = model(seed=7)
    continued = tacit.learn.resume(
        folder / "correlated", last, optimizer(last), part, budget=correlated._budget, distributed=True
    )
    train(continued)
    found = {
        "correlated": torch.cat([one.detach().flatten() for one in last.parameters()]).tolist(),
        "groups": continued._groups.numbers[:200].tolist(),
        "same groups": continued._groups.numbers.tolist() == correlated._groups.numbers.tolist(),
        "correlated ratio": continued.noise_ratio,
        "weights": torch.cat([one.detach().flatten() for one in again.parameters()]).tolist(),
        "clip": resumed.clip,
        "steps": resumed.steps,
        "epsilon": resumed.cost.epsilon,
        "units": resumed.schedule.units,
        "charges": None if budget is None else len(budget.events),
        "finding": None if resumed.finding is None else str(resumed.finding.verdict),
        "ratio": resumed.noise_ratio,
        "refusals": refusals,
    }
    (folder / f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
