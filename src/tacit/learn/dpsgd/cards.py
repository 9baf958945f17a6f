"""A private training in plain language: whom it protects, how, at what cost, and what its audit found."""

from __future__ import annotations

from tacit.accounting import meaning
from tacit.attack import Finding
from tacit.learn.counted_delta import card_sentence
from tacit.learn.dpsgd.checkpoints import TrainingProgress, TrainingSettings
from tacit.learn.dpsgd.schedule import AdaptiveClip
from tacit.mechanisms.randomness import SIMULATED
from tacit.privacy.figures import grouped


def card_of(settings: TrainingSettings, progress: TrainingProgress, audit: str | None) -> str:
    """Return the card of a training."""
    schedule = settings.schedule
    if schedule.steps_per_pass is None:
        sampler = (
            f"Each step takes every unit with probability {float(schedule.rate):.6g} (Poisson samples, expected "
            f"size {schedule.batch_size:,})"
        )
        if schedule.bands > 1:
            sampler = (
                f"Each unit is in one of {schedule.bands} groups, drawn at random; each step takes every unit of one "
                f"group, in turn, with probability {float(schedule.rate):.6g} (expected size {schedule.batch_size:,})"
            )
        whom = "one unit more or less"
    else:
        sampler = "Batches come from a loader that visits every row once per pass, without amplification"
        whom = "one row replaced"
    noises = sorted({value for value, _ in schedule.noise})
    noise = f"{noises[0]:.4g}" + (f" to {noises[-1]:.4g}" if len(noises) > 1 else "")
    clips = "a private quantile of their norms" if isinstance(schedule.clip, AdaptiveClip) else "the clip"
    event = schedule.event
    sentences = [
        f"Training of {schedule.steps:,} steps on {grouped(schedule.units)} units, which protects {whom}.",
        f"{sampler}; gradients are clipped to {clips} ({settings.clipping}), and their sum gets Gaussian noise of "
        f"{noise} times the clip, which is widened by {schedule.widening:.2%} for the rounding of sums.",
        f"All weights of all steps together, charged at the start, cost {settings.cost.in_words(event.relation)}.",
        meaning(event.event, event.delta).sentence,
        "Public are the number of units, the rate, all arguments and the weights of every step; what the training "
        "loop itself shows of rows, losses or norms is not covered.",
    ]
    if told := card_sentence(schedule.delta, settings.stated_delta):
        sentences.insert(3, told.strip())
    if schedule.bands > 1:
        sentences.insert(2, f"The noise of a step is cancelled in part by that of the next {schedule.bands - 1} steps.")
    if progress.is_stopped:
        sentences.append(f"It was stopped after {progress.counted:,} steps.")
    if progress.forfeited:
        sentences.append(
            f"{progress.forfeited:,} steps were lost with processes that died, steps that failed or passes that broke "
            "off, and count."
        )
    if audit is not None:
        sentences.append(f"Audit: {audit}")
    return " ".join([*sentences, *([SIMULATED] if settings.is_simulated else [])])


def audit_words(
    settings: TrainingSettings, found: Finding, noise_ratio: tuple[float, float, float], faults: list[str]
) -> str:
    """Return what canaries showed."""
    measured, low, high = noise_ratio
    return (
        f"{settings.canaries:,} canaries show an epsilon of at least {found.lower_bound:.3g} ({found.verdict}); their "
        f"noise has {measured:.4f} of the stated deviation ({low:.4f} to {high:.4f})"
        f"{''.join(f', and {one}' for one in faults)}."
    )
