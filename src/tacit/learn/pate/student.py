"""`PATE`: a student that learns from the noisy labels of private teachers; and private prediction without a student.

    model = tacit.learn.PATE(
        RandomForestClassifier(), teachers=250, classes=["<=50K", ">50K"], queries=600, answers=300,
        aggregator=tacit.learn.ConfidentGNMax(sigma=40, threshold=200, test_sigma=150),
        student=RandomForestClassifier(), budget=budget, delta=1e-5,
    ).fit(X, y, public=unlabelled)
    model.predict(X_new), model.cost_, model.answered_, model.card_

Promise: the budget is charged the data-independent cost of all `queries`, of which at most `answers` are answered,
before the first label leaves (`pipeline.release`); what is learned afterwards, the student among it, is a function of
the labels and public rows. Teachers are trained before the charge, as nothing leaves them (`teachers`); a training that
is interrupted charges nothing. Private rows that cannot be used (NaN, a label outside of `classes`) are refused before
the charge: such an error is for who holds the arrays, and must not be shown to others. The number of units leads to no
error: a teacher without rows votes for the first class. Data-dependent costs leave through
`report=SanitisedReport(...)` alone: the votes are in no attribute of the model.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.validation import check_is_fitted

from tacit import pipeline
from tacit.learn.counted_delta import HIGHER_EPSILON, card_sentence, counted_delta, warn_if_less
from tacit.learn.pate import teachers as ensemble
from tacit.learn.pate.aggregators import Aggregator, ConfidentGNMax, InteractiveGNMax
from tacit.learn.pate.answers import UNLABELLED, PateAnswers, PatePlan, ask
from tacit.learn.pate.sanitised_epsilon import SanitisedReport
from tacit.ledger import Budget
from tacit.mechanisms.randomness import SIMULATED, SYSTEM, RandomSource
from tacit.pipeline import ReleaseOptions, StepAnchor
from tacit.pipeline.steps import start_digest, step_digest
from tacit.privacy.arguments import instance
from tacit.privacy.errors import Exhausted, InvalidInput, NotFinite, OutOfRange, WrongType
from tacit.privacy.numbers import failure_probability, inside_unit_interval, whole


class _Ensemble(BaseEstimator):  # type: ignore[misc]
    """What `PATE` and `PrivatePrediction` share: checks of the arguments, and teachers."""

    _source: RandomSource = SYSTEM
    teacher: Any
    teachers: int
    classes: Any
    aggregator: Aggregator
    budget: Budget
    delta: float | None
    queries: int
    answers: int | None
    jobs: int

    def _plan(self, report: SanitisedReport | None = None) -> PatePlan:
        """Check all parameters and return the plan, without votes."""
        given: object = self.aggregator
        if not isinstance(given, Aggregator):
            raise WrongType("aggregator must be one of tacit.learn, such as GNMax(40)", name="aggregator", value=given)
        instance("budget", self.budget, Budget, "a budget: budget=tacit.Budget(3, 1e-5)")
        stated = self._stated_delta
        has_report = report is not None  # answers and report together have an (epsilon, delta) alone
        delta = None if stated is None else counted_delta(self.budget, stated, is_approximate=has_report)
        queries = whole("queries", self.queries)
        answers = queries if self.answers is None else whole("answers", self.answers)
        if self.aggregator.test_event is None and answers != queries:
            raise InvalidInput("this aggregator answers every query; leave answers= out", name="answers")
        ensemble.require_teacher(self.teacher)
        teachers = whole("teachers", self.teachers, at_least=2)
        if isinstance(self.aggregator, ConfidentGNMax) and self.aggregator.threshold > teachers:
            raise OutOfRange(
                f"the threshold of {float(self.aggregator.threshold):g} votes is above the number of teachers, "
                f"{teachers}: hardly any query would be answered",
                name="threshold",
                value=self.aggregator.threshold,
            )
        whole("jobs", self.jobs)
        if report is not None:
            instance("report", report, SanitisedReport, "a tacit.learn.SanitisedReport")
        plan = PatePlan(self.aggregator, len(self._classes()), queries, answers, delta, report)
        plan.check()
        warn_if_less(delta, stated, HIGHER_EPSILON)
        return plan

    @property
    def _stated_delta(self) -> float | None:
        return None if self.delta is None else float(failure_probability("delta", self.delta))

    def _classes(self) -> NDArray[Any]:
        try:
            classes = np.unique(np.asarray(self.classes))
        except TypeError:  # of several types
            raise WrongType("classes must be labels of one type", name="classes") from None
        if classes.ndim != 1 or len(classes) < 2 or len(classes) != len(np.asarray(self.classes)):
            raise InvalidInput("classes must be at least two different labels", name="classes")
        return classes

    def _training(self, x: Any, y: Any, units: Any) -> ensemble.TeacherTraining:
        """Check the private rows and return the training of the teachers."""
        rows, labels = _rows("X", x), np.asarray(y)
        if labels.shape != (len(rows),):
            raise WrongType("y must hold one label for each row of X", name="y", value=labels.shape)
        classes = self._classes()
        try:
            index = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
        except TypeError:
            raise WrongType("y has labels of another type than the declared classes", name="y") from None
        if bool((classes[index] != labels).any()):
            raise InvalidInput("y has labels outside of the declared classes", name="y")
        owners = np.arange(len(rows)) if units is None else np.asarray(units)
        if owners.shape != (len(rows),):
            raise WrongType("units must hold one unit for each row of X", name="units", value=owners.shape)
        return ensemble.TeacherTraining(self.teacher, self.teachers, len(classes), rows, index, owners, self.jobs)

    def _require_affordable(self, plan: PatePlan) -> None:
        """Raise BudgetExceeded before teachers are trained in vain."""
        if (refusal := self.budget.refusal(plan.event)) is not None:
            raise refusal

    def _describe(self, plan: PatePlan, answered: str) -> str:
        words = (
            f"{self.teachers} teachers on disjoint parts of the data, which {answered} by {plan.aggregator}. Protects "
            f"one unit, whose rows are all in the part of one teacher. It cost "
            f"{self.cost_.in_words(plan.event.relation)}.{card_sentence(plan.delta, self._stated_delta)}"
        )
        return words + (f" {SIMULATED}" if self._source.simulated else "")

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy that charges the same budget: a budget must not be copied."""
        found = {
            name: one if name == "budget" else clone(one, safe=False) for name, one in self.get_params(False).items()
        }
        return type(self)(**found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


class PATE(ClassifierMixin, _Ensemble):  # type: ignore[misc]
    """A student of private teachers.

    Errors about X and y are for who holds them: a row with NaN or with a label outside of `classes` is refused.

    teacher             scikit-learn classifier, or function of X and y that returns a function from queries to labels
    teachers            how many parts; every unit is in one of them
    classes             all labels, public
    aggregator          LNMax, GNMax, ConfidentGNMax or InteractiveGNMax
    student             scikit-learn classifier
    queries, answers    how many public rows are asked, the first ones, and how many of them are answered at most
    delta               the delta at which the answers are counted, less where the budget leaves less
                        (`tacit.learn.counted_delta`); None for a pure budget
    semi_supervised     "self-training": public rows without an answer get the student's own labels where it is sure
                        (`confidence`); "student": the student takes all public rows, those without a label as -1, as in
                        `sklearn.semi_supervised`; "none": answered rows only
    report              SanitisedReport, or None: no data-dependent figure leaves
    folder              where votes are kept, so that an interrupted training can be continued
    rounds              how often InteractiveGNMax compares with a newly trained student
    """

    def __init__(
        self,
        teacher: Any = None,
        *,
        teachers: int = 250,
        classes: Any = None,
        aggregator: Any = None,
        student: Any = None,
        budget: Any = None,
        delta: float | None = None,
        queries: int = 500,
        answers: int | None = None,
        semi_supervised: str = "self-training",
        confidence: float = 0.9,
        report: SanitisedReport | None = None,
        folder: Path | str | None = None,
        jobs: int = 1,
        rounds: int = 2,
        purpose: str = "",
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self.teacher, self.teachers, self.classes, self.aggregator = teacher, teachers, classes, aggregator
        self.student, self.budget, self.delta = student, budget, delta
        self.queries, self.answers, self.report = queries, answers, report
        self.semi_supervised, self.confidence = semi_supervised, confidence
        self.folder, self.jobs, self.rounds = folder, jobs, rounds
        self.purpose, self.progress = purpose, progress

    def preview(self) -> pipeline.Quote:
        """Return what `fit` would charge, and spend nothing."""
        return pipeline.preview(self._plan(self.report), self.budget)

    def fit(self, X: Any, y: Any, *, public: Any, units: Any = None) -> Self:  # noqa: N803
        """Train teachers on private rows, let them answer about public rows, and train the student.

        `units` has the unit of each row; without it every row is a unit.
        """
        plan = self._plan(self.report)
        inside_unit_interval("confidence", self.confidence)
        if self.semi_supervised not in ("self-training", "student", "none"):
            raise InvalidInput('semi_supervised must be "self-training", "student" or "none"', name="semi_supervised")
        self._require_student()
        training = self._training(X, y, units)
        pool = _rows("public", public)
        if pool.shape[1:] != training.x.shape[1:]:
            raise WrongType("public rows must have the shape of the rows of X", name="public", value=pool.shape)
        if len(pool) < plan.queries:
            raise OutOfRange(
                f"{plan.queries:,} queries need as many public rows, and there are {len(pool):,}; give more rows or "
                "ask fewer queries",
                name="queries",
                value=plan.queries,
            )
        ensemble.rehearse(self.teacher, plan.classes, pool)
        self._require_affordable(plan)
        folder = None if self.folder is None else Path(self.folder)
        asked = pool[: plan.queries]
        votes = training.votes(asked, self._source, folder=folder, progress=self.progress)
        plan = self._with_votes(plan, votes, pool)
        released = pipeline.release(plan, self.budget, ReleaseOptions(self.purpose, source=self._source))
        self.cost_, self.permit_ = released.cost, released.permit
        self._learn(released.answer, pool)
        self.card_ = self._card(plan)
        return self

    def _require_student(self) -> None:
        """Raise unless the student can be trained, and tells how sure it is where that is needed."""
        if not hasattr(self.student, "fit") or not hasattr(self.student, "get_params"):
            raise WrongType("student must be a scikit-learn classifier", name="student")
        is_asked = self.semi_supervised == "self-training" or isinstance(self.aggregator, InteractiveGNMax)
        if is_asked and not hasattr(self.student, "predict_proba"):
            raise WrongType("self-training and InteractiveGNMax need a student with predict_proba", name="student")

    def _with_votes(self, plan: PatePlan, votes: NDArray[np.int64], pool: Any) -> PatePlan:
        interactive = isinstance(plan.aggregator, InteractiveGNMax)
        opinion = (lambda labels: self._probabilities(labels, pool)) if interactive else None
        rounds = whole("rounds", self.rounds) if interactive else 1
        return PatePlan(
            plan.aggregator, plan.classes, plan.queries, plan.answers, plan.delta, plan.report, votes, opinion, rounds
        )

    def _probabilities(self, labels: NDArray[np.int64], pool: Any) -> NDArray[np.float64]:
        """Return the probabilities of all classes that a student with the labels so far gives to each query."""
        count = len(self._classes())
        uniform = np.full((len(labels), count), 1 / count)
        if len(np.unique(labels[labels != UNLABELLED])) < 2:
            return uniform
        student = self._student(labels, pool)
        found = np.zeros_like(uniform)
        found[:, student.classes_] = student.predict_proba(pool[: len(labels)])
        total = found.sum(axis=1, keepdims=True)
        is_usable = np.isfinite(total) & (total > 0) & (found >= 0).all(axis=1, keepdims=True)
        return np.where(is_usable, found / np.where(is_usable, total, 1.0), uniform)

    def _student(self, labels: NDArray[np.int64], pool: Any) -> Any:
        """Return a student trained on labels of the first public rows, and on the others as `semi_supervised` says."""
        known = np.flatnonzero(labels != UNLABELLED)
        student = clone(self.student)
        if self.semi_supervised == "none":
            return student.fit(pool[known], labels[known])
        everything = np.full(len(pool), UNLABELLED, dtype=np.int64)
        everything[known] = labels[known]
        if self.semi_supervised == "self-training":
            student = SelfTrainingClassifier(student, threshold=float(self.confidence))
        return student.fit(pool, everything)

    def _learn(self, answers: PateAnswers, pool: Any) -> None:
        """Train the student on what was released, and set the attributes of a fitted estimator."""
        self.classes_ = self._classes()
        self.answered_ = np.flatnonzero(answers.given)
        self.labels_ = self.classes_[answers.labels[self.answered_]]
        self.sanitised_ = answers.report
        self.n_features_in_ = int(np.prod(pool.shape[1:]))
        if len(np.unique(answers.labels[answers.labels != UNLABELLED])) < 2:
            self.student_ = None
        else:
            self.student_ = self._student(answers.labels, pool)

    def _card(self, plan: PatePlan) -> str:
        answered = f"answered {len(self.answered_)} of {plan.queries} queries (at most {plan.answers})"
        words = f"A student of {self._describe(plan, answered)}"
        if self.student_ is None:
            words += f" Too few labels to train the student: it predicts {self._only_label()} for every row."
        return words if self.sanitised_ is None else f"{words} Its report: {self.sanitised_}."

    def _only_label(self) -> Any:
        """Return what is predicted without a student: the only label there is, or the first class."""
        return self.labels_[0] if len(self.labels_) else self.classes_[0]

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the student's labels: post-processing, free of cost."""
        check_is_fitted(self, "student_")
        rows = _rows("X", X)
        if self.student_ is None:
            return np.full(len(rows), self._only_label(), dtype=self.classes_.dtype)
        return np.asarray(self.classes_[np.asarray(self.student_.predict(rows), dtype=np.int64)])


class PrivatePrediction(_Ensemble):
    """Answers queries by the teachers themselves, without a student; the parameters are those of `PATE`.

    All `queries` are charged when the teachers are trained. Every answer is noted with the permit before it leaves, so
    that the right to ask is not doubled by a copy. The teachers are private: a fitted object cannot be pickled, and
    answers in its own process only.
    """

    def __init__(
        self,
        teacher: Any = None,
        *,
        teachers: int = 250,
        classes: Any = None,
        aggregator: Any = None,
        budget: Any = None,
        delta: float | None = None,
        queries: int = 500,
        answers: int | None = None,
        jobs: int = 1,
        purpose: str = "",
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self.teacher, self.teachers, self.classes, self.aggregator = teacher, teachers, classes, aggregator
        self.budget, self.delta, self.queries, self.answers = budget, delta, queries, answers
        self.jobs, self.purpose, self.progress = jobs, purpose, progress

    def fit(self, X: Any, y: Any, *, units: Any = None, public: Any = None) -> Self:  # noqa: N803
        """Train the teachers, and charge all queries.

        On `public` rows the teacher is tried before anything is charged; without them, one that always fails is not
        noticed: it votes for the first class.
        """
        plan = self._plan()
        training = self._training(X, y, units)
        if public is not None:
            ensemble.rehearse(self.teacher, plan.classes, _rows("public", public))
        self._require_affordable(plan)
        models = training.models(self._source, self.progress)
        permit = pipeline.begin(plan, self.budget, ReleaseOptions(self.purpose, source=self._source))
        self._anchor = StepAnchor(self.budget, permit.id, plan.queries)
        self._digest = start_digest(self._source.read(32))
        self._anchor.begin(self._digest)
        self._models, self._charged_plan, self._shape, self._lock = models, plan, training.x.shape[1:], Lock()
        self._process = os.getpid()
        self.classes_, self.cost_, self.permit_ = self._classes(), permit.cost, permit
        self.asked_ = self.answered_ = 0
        answered = f"answer at most {plan.answers} of {plan.queries} queries"
        self.card_ = f"Private prediction by {self._describe(plan, answered)}"
        return self

    def predict(self, X: Any) -> np.ma.MaskedArray[Any, Any]:  # noqa: N803
        """Return a label for each row, masked where there is none.

        If fewer queries are left than rows, or no answers, Exhausted is raised and nothing is asked. One thread asks at
        a time: two that read the same number of answers would each give the last one. For the same reason a process
        that was forked from that of the fit gets no answers.
        """
        check_is_fitted(self, "card_")
        if os.getpid() != self._process:
            raise InvalidInput(
                "these teachers are those of another process, from which this one was forked; ask there", name="X"
            )
        with self._lock:
            return self._predict(_rows("X", X))

    def _predict(self, rows: NDArray[Any]) -> np.ma.MaskedArray[Any, Any]:
        plan = self._charged_plan
        if rows.shape[1:] != self._shape:
            raise WrongType("rows must have the shape of those that were learned from", name="X", value=rows.shape)
        if self.asked_ + len(rows) > plan.queries or self.answered_ >= plan.answers:
            raise Exhausted(
                f"{plan.queries} queries and {plan.answers} answers were charged, of which "
                f"{plan.queries - self.asked_} and {plan.answers - self.answered_} are left",
                accepted="ask fewer rows, or fit again with a new charge",
            )
        every = np.stack([ensemble.ballots(model, plan.classes, rows) for model in self._models])
        votes = ensemble.count_votes(every, plan.classes)
        labels = np.zeros(len(rows), dtype=np.int64)
        silent = np.ones(len(rows), dtype=np.bool_)
        for index in range(len(rows)):
            if self.answered_ == plan.answers:
                break
            label, is_given = ask(plan.aggregator, votes[index], None, 0, self._source)
            self._advance()
            if is_given:
                labels[index], silent[index] = int(label), False
                self.answered_ += 1
        return np.ma.MaskedArray(self.classes_[labels], mask=silent)

    def _advance(self) -> None:
        """Note one more query with the permit, before its answer leaves."""
        after = step_digest(self._digest, self._source.read(32))
        self._anchor.advance(self.asked_ + 1, after, self._digest)
        self._digest = after
        self.asked_ += 1

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if hasattr(self, "_models"):
            raise WrongType("private prediction holds private teachers and cannot be copied or pickled")
        return super().__reduce_ex__(protocol)


def _rows(name: str, values: Any) -> NDArray[Any]:
    """Return rows as an array of finite numbers, or of anything that is not a float."""
    rows = np.asarray(values)
    if rows.ndim < 2 or not len(rows):
        raise WrongType(f"{name} must be rows of features", name=name, value=rows.shape)
    if rows.dtype.kind == "f" and not bool(np.isfinite(rows).all()):
        raise NotFinite(f"{name} has values that are NaN or infinite", name=name)
    return rows
