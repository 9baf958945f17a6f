"""`curator.train`: one release, kept as a document that predicts without the table; repeated for nothing."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.curator import models
from tacit.curator.models import ModelStore, UnreadableModelWarning, estimator_of
from tacit.learn import (
    CategoricalNB,
    GaussianNB,
    HistGradientBoostingClassifier,
    KBinsDiscretizer,
    LinearRegression,
    LogisticRegression,
    PrivateSearch,
    StandardScaler,
)
from tacit.privacy import CountedDeltaWarning
from tacit.privacy.errors import (
    BudgetExceeded,
    InvalidInput,
    NotInCatalog,
    StorageUnavailable,
    TooLarge,
    UnknownName,
    WrongType,
)
from tacit.storage import files

COLUMNS = ["age", "sex"]
ROWS = {"age": [20, 60], "sex": ["F", "M"]}


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    number = np.arange(2_000)
    rows = pd.DataFrame({"patient": number, "age": number % 90, "sex": np.where(number % 2, "F", "M")})
    rows = rows.assign(costs=rows.age * 10.0, ill=rows.age > 50)
    with tacit.Curator(tmp_path / "clinic") as made:
        made.add_table(
            "visits",
            rows,
            unit="patient",
            limits=tacit.Limits(rows_per_unit=1),
            columns={
                "age": tacit.Bounds(0, 90),
                "sex": tacit.Categories(["F", "M"]),
                "costs": tacit.Bounds(0, 900),
            },
        )
        made.set_budget("visits", epsilon=10.0, delta=1e-7)
        made.add_analyst("ana", {"visits": tacit.Budget(2.0, 1e-8)})
        yield made


def train(curator: tacit.Curator, **options: Any) -> Any:
    return curator.train("visits", LinearRegression(), COLUMNS, "costs", 1.0, **options)


def spent(curator: tacit.Curator, analyst: str | None = None) -> float:
    return curator.budget("visits", analyst).spent().epsilon


def test_a_training_returns_a_fitted_copy_and_charges_its_epsilon(curator: tacit.Curator) -> None:
    given = LinearRegression(epsilon=0.5)
    fitted = curator.train("visits", given, features=COLUMNS, target="costs", purpose="costs by age")
    assert not hasattr(given, "coef_")
    assert (given.model_id, given.epsilon) == (None, 0.5)
    assert fitted.cost.epsilon == spent(curator) == pytest.approx(0.5)
    assert fitted.predict(pd.DataFrame({"age": [20, 80], "sex": ["F", "M"]})).shape == (2,)


def test_a_training_takes_the_delta_that_is_stated_and_a_small_share_otherwise(curator: tacit.Curator) -> None:
    def planned(**stated: Any) -> Any:
        estimator = LogisticRegression(max_iter=50, **stated.pop("own", {}))
        return curator.prepare_training("visits", estimator, ["age"], "ill", 1.0, **stated).preview()

    for quote in (planned(delta=1e-9), planned(own={"delta": 1e-9})):
        assert quote.delta == 1e-9
        assert 0.999 < quote.epsilon <= 1.0
        assert "Gaussian" in quote.lines[0]
    assert 0 < planned().delta < 1e-10
    with pytest.warns(CountedDeltaWarning, match="at delta 5e-9, not 1e-7"):
        quote = planned(delta=1e-7)
    assert quote.delta == pytest.approx(1e-7 / 10 / 2)  # a half of the part for stated deltas
    assert "counted at delta 5e-9, not at the stated 1e-7: a training takes at most half" in quote.lines[-1]
    fitted = curator.train("visits", LogisticRegression(max_iter=50), ["age"], "ill", 1.0, delta=1e-9)
    assert fitted.cost.delta == fitted.to_document()["parameters"]["delta"] == 1e-9
    with pytest.raises(InvalidInput, match="delta"):
        planned(delta=1.5)


def test_bins_of_equal_width_need_no_training(curator: tacit.Curator) -> None:
    with pytest.raises(InvalidInput, match="equal width"):
        curator.train("visits", KBinsDiscretizer(strategy="uniform"), ["age"], None, 1.0)
    assert spent(curator) == 0


def test_work_on_rows_in_each_round_is_part_of_the_time_class(curator: tacit.Curator) -> None:
    def steps(estimator: Any, rows: int) -> int:
        asked = curator.prepare_training("visits", estimator.set_params(rows_per_unit=rows), ["age"], "ill", 1.0)
        return asked.prepared.statistic.work.unit_steps

    for make in (LogisticRegression, HistGradientBoostingClassifier):
        few, many = (steps(make(max_iter=rounds), 1) for rounds in (10, 110))
        assert 100 <= many - few <= 1000
        assert steps(make(max_iter=110), 50) - steps(make(max_iter=10), 50) == 50 * (many - few)


def test_a_kept_model_predicts_after_the_table_was_removed(curator: tacit.Curator) -> None:
    fitted = train(curator)
    curator.remove_table("visits")
    with tacit.Curator(curator.folder) as other:
        (kept,) = other.models.all()
        assert kept == other.models.get(fitted.model_id)
        assert kept.predict(ROWS).values == fitted.predict(ROWS).tolist()
        assert kept.predict(pd.DataFrame(ROWS)).values == fitted.predict(ROWS).tolist()
        assert (kept.table, kept.dataset, kept.features, kept.target) == ("visits", "visits", ("age", "sex"), "costs")
        assert (kept.cost, kept.card, kept.analyst) == (fitted.cost, fitted.card, None)
        assert kept.permit == fitted.answer_.permit.id


def test_only_the_owner_can_read_a_model_and_no_row_is_in_it(curator: tacit.Curator) -> None:
    kept = curator.models.get(train(curator).model_id)
    assert kept.path.stat().st_mode & 0o777 == 0o600
    assert kept.path.parent.stat().st_mode & 0o777 == 0o700
    assert [one.name for one in kept.path.parent.iterdir()] == [kept.path.name]
    assert len(kept.path.read_bytes()) < 20_000  # 2,000 rows take more


def test_the_same_training_again_costs_nothing_and_is_the_same_model(curator: tacit.Curator) -> None:
    first, again = train(curator), train(curator)
    assert (again.cost.epsilon, again.model_id) == (0, first.model_id)
    assert spent(curator) == pytest.approx(1.0)
    assert (again.coef_ == first.coef_).all()
    assert [one.cost.epsilon for one in curator.models.all()] == [first.cost.epsilon]
    stated = LinearRegression(bounds={"age": (0, 90)})  # what is registered, in other words
    same = curator.train("visits", stated, COLUMNS, "costs", 1.0)
    assert (same.cost.epsilon, same.coef_.tolist()) == (0, first.coef_.tolist())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (StandardScaler(), StandardScaler(with_mean=False)),
        (StandardScaler(), StandardScaler(with_std=False)),
        (KBinsDiscretizer(3), KBinsDiscretizer(3, encode="ordinal")),
    ],
)
def test_a_model_that_says_something_else_of_the_same_release_is_another(
    curator: tacit.Curator, one: Any, other: Any
) -> None:
    first, second = (curator.train("visits", each, ["age"], epsilon=1.0) for each in (one, other))
    assert second.cost.epsilon == 0
    assert first.model_id != second.model_id
    for fitted in (first, second):
        kept = curator.models.get(fitted.model_id).predict({"age": [20, 70]})
        assert kept.values == fitted.transform({"age": [20, 70]}).tolist()


@pytest.mark.filterwarnings("ignore:epsilon 300 lets an attacker")
def test_trainings_of_other_targets_and_epsilons_are_other_models_although_their_numbers_are_equal(
    tmp_path: Path,
) -> None:
    number = np.arange(600)
    rows = pd.DataFrame({"patient": number, "sex": np.where(number % 3, "F", "M"), "ill": number % 2 == 0})
    rows = rows.assign(smokes=rows.ill)
    with tacit.Curator(tmp_path / "clinic") as curator:
        limits, columns = tacit.Limits(rows_per_unit=1), {"sex": tacit.Categories(["F", "M"])}
        curator.add_table("visits", rows, unit="patient", limits=limits, columns=columns)
        curator.set_budget("visits", epsilon=300.0)
        made = [
            curator.train("visits", CategoricalNB(), ["sex"], target, epsilon)
            for target in ("ill", "smokes")
            for epsilon in (60.0, 61.0)  # at which hardly any count has noise
        ]
        numbers = [{**one.to_document()["fitted"], "card_": ""} for one in made]
        assert any(one == numbers[0] for one in numbers[1:])
        assert len({one.model_id for one in made}) == 4


def test_a_model_of_a_repeated_training_keeps_the_price_of_its_release(curator: tacit.Curator) -> None:
    first = curator.models.get(train(curator).model_id)
    assert first.price == first.cost
    curator.models.remove(first.id)
    hers, again = (curator.models.get(train(curator, analyst=who).model_id) for who in ("ana", None))
    for kept in (hers, again):
        assert (kept.cost.epsilon, kept.permit, kept.price) == (0, None, first.price)
    written = json.loads(again.path.read_text())
    del written["price"]  # as models were written before
    again.path.write_text(json.dumps(written))
    assert ModelStore(curator.folder).get(again.id).price == again.cost
    stated = curator.train("visits", LogisticRegression(max_iter=50), ["age"], "ill", 1.0, delta=1e-9)
    assert curator.models.get(stated.model_id).price == stated.cost


def test_an_analyst_has_models_of_their_own_and_pays_within_the_cap(curator: tacit.Curator) -> None:
    hers = train(curator, analyst="ana")
    assert spent(curator, "ana") == pytest.approx(1.0)
    owners = train(curator)
    assert (owners.cost.epsilon, owners.model_id == hers.model_id) == (0, False)
    assert [one.analyst for one in curator.models.all()] == ["ana", None]
    with pytest.raises(BudgetExceeded):
        curator.train("visits", GaussianNB(), ["age"], "ill", 1.5, analyst="ana")


def test_a_training_whose_model_could_not_be_written_costs_nothing_when_repeated(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "sync", full)
        with pytest.raises(StorageUnavailable, match="charged, and repeating it costs nothing"):
            train(curator)
    assert curator.models.all() == []
    before = spent(curator)
    assert before == pytest.approx(1.0)
    again = train(curator)
    assert (again.cost.epsilon, spent(curator)) == (0, before)
    assert curator.models.get(again.model_id).predict(ROWS).values == again.predict(ROWS).tolist()


NOT_WRITTEN: list[tuple[Any, list[str], str | None]] = [
    (GaussianNB(classes={"F", "M"}), ["age"], "sex"),
    (GaussianNB(classes=frozenset("FM")), ["age"], "sex"),
    (GaussianNB(classes={"F": 1, "M": 2}.keys()), ["age"], "sex"),
    (GaussianNB(classes=(one for one in "FM")), ["age"], "sex"),
    (GaussianNB(categories={"sex": {"F", "M"}}), ["sex"], "ill"),
    (GaussianNB(categories={"sex": iter("FM")}), ["sex"], "ill"),
    (LinearRegression(fit_intercept=object()), ["age"], "costs"),
    (LinearRegression(bounds={"age": [object(), 90]}), ["age"], "costs"),
    (StandardScaler(with_mean=1j), ["age"], None),
    (PrivateSearch(LinearRegression(), {"fit_intercept": [True, object()]}, mean_runs=1), ["age"], "costs"),
]
WRITTEN: list[tuple[Any, list[str], str | None]] = [
    (GaussianNB(epsilon=Decimal("0.5")), ["age"], "sex"),
    (LinearRegression(epsilon=Fraction(1, 2)), ["age"], "costs"),
    (GaussianNB(alpha=Decimal(1)), ["age"], "sex"),
    (GaussianNB(classes=pd.Series(["F", "M"])), ["age"], "sex"),
    (GaussianNB(classes=pd.Index(["F", "M"])), ["age"], "sex"),
    (GaussianNB(classes=np.array(["F", "M"])), ["age"], "sex"),
    (GaussianNB(classes=tacit.Categories(["F", "M"])), ["age"], "sex"),
    (HistGradientBoostingClassifier(learning_rate=Fraction(1, 3), max_iter=2), ["age"], "sex"),
    (PrivateSearch(GaussianNB(), {"alpha": [Decimal(1), 2.0]}, mean_runs=1), ["age"], "sex"),
    *(
        (kind(bounds={"age": (Decimal(0), Decimal(90))}), ["age"], target)
        for kind, target in ((LinearRegression, "costs"), (StandardScaler, None), (GaussianNB, "sex"))
    ),
]


@pytest.mark.parametrize(("estimator", "features", "target"), NOT_WRITTEN + WRITTEN)
def test_a_training_whose_model_cannot_be_written_charges_nothing(
    curator: tacit.Curator, estimator: Any, features: list[str], target: str | None
) -> None:
    try:
        fitted = curator.train("visits", estimator, features, target, 0.5 if estimator.epsilon is None else None)
    except InvalidInput:
        assert spent(curator) == 0
        assert curator.models.all() == []
        assert (estimator, features, target) in NOT_WRITTEN
    else:
        assert (estimator, features, target) in WRITTEN
        (kept,) = curator.models.all()
        rows = {"age": [20, 60]}
        assert (
            kept.predict(rows).values == getattr(fitted, "predict", getattr(fitted, "transform", None))(rows).tolist()
        )


def test_a_folder_that_cannot_hold_models_is_noticed_before_the_charge(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    (curator.folder / "models").write_text("a file in the way")
    with pytest.raises(StorageUnavailable):
        train(curator)
    (curator.folder / "models").unlink()
    monkeypatch.setattr(models, "MODELS_MAX", 1)
    train(curator)
    with pytest.raises(TooLarge, match="remove some"):
        curator.train("visits", LinearRegression(), ["age"], "costs", 1.0)
    assert spent(curator) == pytest.approx(1.0)
    train(curator, analyst="ana")  # whose models are counted apart


def test_a_preview_is_what_is_charged(curator: tacit.Curator) -> None:
    planned = curator.prepare_training("visits", LinearRegression(), COLUMNS, "costs", 0.75, analyst="ana")
    quote = planned.preview()
    assert spent(curator) == 0
    fitted, kept = planned.release()
    assert (quote.epsilon, quote.analyst) == (fitted.cost.epsilon, kept.analyst)
    assert planned.preview().is_released


def test_other_methods_than_predict_have_named_columns(curator: tacit.Curator) -> None:
    classifier = curator.models.get(curator.train("visits", GaussianNB(), ["age"], "ill", 1.0).model_id)
    scaler = curator.models.get(curator.train("visits", StandardScaler(), ["age", "costs"], epsilon=1.0).model_id)
    likely = classifier.predict({"age": [10, 80]}, "predict_proba")
    assert (likely.names, np.shape(likely.values)) == (["False", "True"], (2, 2))
    scaled = scaler.predict({"age": [10], "costs": [100]})
    assert (scaled.method, scaled.names) == ("transform", ["age", "costs"])


def test_a_removed_model_is_gone(curator: tacit.Curator) -> None:
    kept = curator.models.get(train(curator).model_id)
    assert curator.models.all() == [kept]
    curator.models.remove(kept.id)
    assert curator.models.all() == []
    for ask in (lambda: curator.models.get(kept.id), lambda: kept.document, lambda: curator.models.remove(kept.id)):
        with pytest.raises(UnknownName, match=f"there is no model {kept.id}"):
            ask()


@pytest.mark.parametrize("name", ["", "..", "../catalog", "x" * 24, "0" * 24, "\0" * 24, 7, None])
def test_a_name_that_is_no_id_reaches_no_file(curator: tacit.Curator, name: Any) -> None:
    with pytest.raises(UnknownName):
        curator.models.get(name)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "tacit model 1"}', '{"format": "tacit model 2"}', "\0"])
def test_a_damaged_model_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / f"{'0' * 24}.json").write_text(text)
    with pytest.raises(InvalidInput):
        ModelStore(tmp_path).get("0" * 24)


DAMAGED = [
    "",
    "{",
    "[]",
    "null",
    "[" * 100_000,
    '{"format": "tacit model 1"}',
    '{"format": "tacit model 0"}',
    "CUT",
    '"trained_at": "2026-01-01T00:00:00"',
    '"trained_at": "0001-01-01T00:00:00+14:00"',
    '"analyst": 5',
    '"card": null, "id": "000000000000000000000000"',
    '"features": 7',
]


@pytest.mark.parametrize("damage", DAMAGED)
def test_one_file_that_cannot_be_read_stops_nobody(curator: tacit.Curator, damage: str) -> None:
    kept = curator.models.get(train(curator).model_id)
    other = kept.path.with_name(f"{'1' * 24}.json")
    good = kept.path.read_text()
    if damage.startswith('"'):
        damage = json.dumps(json.loads(good) | {"id": "1" * 24} | json.loads(f"{{{damage}}}"))
    other.write_text(good[: len(good) // 2] if damage == "CUT" else damage)
    kept.path.with_name("notes.json").write_text("notes")
    store = ModelStore(curator.folder)
    has_warned = '"2026-01-01' not in damage  # a time without a zone can be read
    with pytest.warns(UnreadableModelWarning, match=other.name) if has_warned else nullcontext() as found:
        assert kept in store.all()
    assert len(found or []) == has_warned
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadableModelWarning)
        train(curator, analyst="ana")
    assert store.get(kept.id).predict(ROWS).values
    store.remove(other.stem)
    assert not other.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(store.all()) == 2


def test_a_model_whose_document_was_changed_makes_no_other_object(curator: tacit.Curator) -> None:
    kept = curator.models.get(train(curator).model_id)
    found = json.loads(kept.path.read_text())
    kept.path.write_text(json.dumps(found | {"document": found["document"] | {"estimator": "make_private"}}))
    with pytest.raises(InvalidInput, match="no document of an estimator"):
        curator.models.get(kept.id).predict(ROWS)


def test_wrong_arguments_of_a_training_charge_nothing(curator: tacit.Curator) -> None:
    given: list[tuple[type[Exception], tuple[Any, ...], dict[str, Any]]] = [
        (NotInCatalog, ("absent", LinearRegression(), COLUMNS, "costs"), {}),
        (WrongType, ("visits", "LinearRegression", COLUMNS, "costs"), {}),
        (WrongType, ("visits", LinearRegression(), "age", "costs"), {}),
        (WrongType, ("visits", LinearRegression(), [1], "costs"), {}),
        (InvalidInput, ("visits", LinearRegression(), COLUMNS, "costs"), {"budget": tacit.Budget(1.0)}),
        (InvalidInput, ("visits", LinearRegression(budget=tacit.Budget(1.0)), COLUMNS, "costs"), {}),
    ]
    for error, arguments, options in given:
        with pytest.raises(error):
            curator.train(*arguments, **{"epsilon": 1.0, **options})
    assert spent(curator) == 0


@pytest.mark.parametrize(
    ("own", "stated", "words"),
    [
        ({}, {}, "state what the fit costs"),
        ({"epsilon": 0.5}, {"epsilon": 0.25}, "epsilon 0.5 and its training epsilon 0.25"),
        ({"delta": 1e-9}, {"epsilon": 1.0, "delta": 1e-8}, "delta 1e-09 and its training delta 1e-08"),
    ],
)
def test_what_a_training_costs_is_stated_once(curator: tacit.Curator, own: Any, stated: Any, words: str) -> None:
    """By the estimator or with the training, or by both alike: an epsilon in the code that is not charged misleads."""
    with pytest.raises(InvalidInput, match=words):
        curator.train("visits", LinearRegression(**own), COLUMNS, "costs", **stated)
    assert spent(curator) == 0


def test_a_cost_that_is_stated_twice_alike_is_charged_once(curator: tacit.Curator) -> None:
    fitted = curator.train("visits", LinearRegression(epsilon=0.5), COLUMNS, "costs", epsilon=0.5)
    assert (fitted.epsilon, fitted.cost.epsilon) == (0.5, pytest.approx(0.5))
    for stated in ({"epsilon": 0.25}, {"rho": 0.125}):
        with pytest.raises(InvalidInput, match="state one of them"):
            LinearRegression(epsilon=0.5).fit_table(curator.table("visits"), COLUMNS, "costs", **stated)


@pytest.mark.parametrize(
    ("features", "target"),
    [(["age", "AGE"], "costs"), (["Age", "age", "sex"], "costs"), (["age", "costs"], "COSTS"), (["SEX"], "sex")],
)
def test_names_that_differ_only_in_case_are_one_column(
    curator: tacit.Curator, features: list[str], target: str
) -> None:
    with pytest.raises(InvalidInput, match="each column is a feature once"):
        curator.train("visits", LinearRegression(), features, target, 1.0)
    assert spent(curator) == 0


@pytest.mark.parametrize("estimator", [GaussianNB(categories=5), PrivateSearch(GaussianNB(categories=["F"]), {})])
def test_categories_that_are_no_mapping_are_refused_on_tables_as_on_arrays(
    curator: tacit.Curator, estimator: Any
) -> None:
    with pytest.raises(WrongType, match="categories is a mapping"):
        curator.train("visits", estimator, ["age"], "ill", 1.0)
    with pytest.raises(WrongType, match="categories is a mapping"):
        estimator.set_params(epsilon=1.0).fit(pd.DataFrame({"age": [1.0, 2.0]}), [True, False])
    assert spent(curator) == 0


def test_estimators_by_name_take_parameters_of_their_own_alone() -> None:
    made = estimator_of("LinearRegression", {"fit_intercept": False})
    assert (type(made), made.fit_intercept) == (LinearRegression, False)
    for name in ("epsilon", "delta", "budget", "fit", "__class__"):
        with pytest.raises(InvalidInput):
            estimator_of("LinearRegression", {name: 1})
    for name in ("PATE", "make_private", "__all__", "", "os"):
        with pytest.raises(UnknownName, match="the estimators are"):
            estimator_of(name, {})
