"""Inputs made of digits are fixed functions of one image; trainings spend what their recipe says, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bench.learning import digit_training, mnist, scattering  # noqa: E402
from bench.learning.images import Examples, cosines, scattered, upright  # noqa: E402
from tacit import accounting  # noqa: E402
from tacit.privacy.events import Gaussian, Repeated, Sampled  # noqa: E402

DIGITS = Examples.generated(40, 20)


@pytest.mark.parametrize("function", [scattered, cosines(8), upright])
def test_inputs_of_an_image_do_not_depend_on_the_others(function: Callable[[Any], Any]) -> None:
    together, alone = function(DIGITS.x), function(DIGITS.x[7:8])
    assert torch.allclose(together[7].float(), alone[0].float(), atol=1e-2 if function is scattered else 1e-5)
    assert together.float().isfinite().all()


def test_inputs_of_an_empty_image_are_finite() -> None:
    for function in (scattered, cosines(8), upright):
        assert function(torch.zeros(2, 28, 28)).float().isfinite().all()


def test_images_have_81_channels_on_a_grid_and_wavelets_do_not_see_a_constant() -> None:
    assert scattering.scattering(DIGITS.x[:2]).shape == (2, scattering.CHANNELS, scattering.GRID, scattering.GRID)
    spectrum = torch.fft.fft2(torch.ones(scattering.FRAMED, scattering.FRAMED))
    for scale in (0, 1):
        assert torch.fft.ifft2(spectrum * scattering._wavelets(scale)).abs().max() < 1e-5


def test_folded_spectra_are_those_of_every_second_pixel() -> None:
    maps = torch.randn(3, scattering.FRAMED, scattering.FRAMED)
    found = scattering._halved(torch.fft.fft2(maps))
    assert torch.allclose(found.real, maps[:, ::2, ::2], atol=1e-5)


def test_a_wavelet_answers_most_to_waves_of_its_own_angle() -> None:
    across = torch.cos(scattering.FREQUENCY * torch.arange(28.0)).expand(28, 28)
    finest = scattering.scattering(across[None])[0, 1 : 1 + scattering.ANGLES, 3, 3]
    assert int(finest.argmax()) == 0


def test_a_slanted_bar_is_made_upright_and_moved_to_the_middle() -> None:
    image = torch.zeros(1, 28, 28)
    for row in range(6, 22):
        image[0, row, 2 + row // 2 : 5 + row // 2] = 1
    found, offsets = upright(image)[0], torch.arange(28.0) - 13.5
    mass = found.sum()
    assert abs(float((found.sum(0) @ offsets) / mass)) < 0.2
    assert abs(float(torch.einsum("ij,i,j->", found, offsets, offsets) / mass)) < 1


def test_steps_are_as_many_as_an_epsilon_allows() -> None:
    noise, lot, epsilon = 4.0, 2400, 0.5
    steps = mnist.steps_until(epsilon, noise, lot)

    def cost(count: int) -> float:
        event = Repeated(Sampled(lot / mnist.TRAINING_ROWS, Gaussian(noise)), count)
        return accounting.epsilon(event, digit_training.DELTA).upper

    assert cost(steps) <= epsilon < cost(steps + steps // 50 + 2)


def test_a_training_spends_its_epsilon_and_is_scored_after_every_epoch() -> None:
    inputs = DIGITS.through(cosines(4))
    recipe = digit_training.Recipe(0.5, 1.0, batch_size=10, steps=12, hidden=3, epsilon=1.0)
    outcome = digit_training.private(inputs, recipe, seed=0, by_epoch=True)
    assert len(outcome.accuracies) == 3
    assert 0.99 < outcome.epsilon <= 1.0
    stated = digit_training.private(inputs, replace(recipe, epsilon=None, noise=outcome.noise), seed=0)
    assert stated.epsilon == pytest.approx(outcome.epsilon, rel=1e-3)


def test_sweeps_contain_the_reference_in_every_factor() -> None:
    varied = [{mnist._varied(factor, value) for value in values} for factor, values in mnist.FACTORS.items()]
    assert len(set.intersection(*varied)) == 1
