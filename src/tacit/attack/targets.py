"""What can be attacked: a published table, published statistics, a mechanism, a trained model.

A target holds what an attacker sees, and, apart from it, the ground truth that the caller hands over for scoring. No
target reaches into an engine, a ledger or a file: interfaces are called (`query_interface`), tables are what was
published.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.attack.records import Records, require_single
from tacit.privacy.errors import EmptyInput, InvalidInput, OutOfRange, TacitError, WrongType
from tacit.privacy.numbers import whole


class DoesNotFit(InvalidInput):
    """The target is too small for an attack, or is none of its kind; suites then call the attack not applicable.

    `sentence` is fixed text; `refusal`, which the message adds, is what the interface said and may quote a person. Code
    and exit code are those of the error with which the interface refused, if it did.
    """

    def __init__(self, sentence: str, *, name: str | None = None, refused: TacitError | None = None) -> None:
        self.sentence, self.refusal = sentence, "" if refused is None else refused.message
        super().__init__(f"{sentence}: {self.refusal}" if self.refusal else sentence, name=name)
        if refused is not None:
            vars(self).update(code=refused.code, exit_code=refused.exit_code)


Mask = NDArray[np.bool_]
Numbers = NDArray[np.float64]
Bits = Sequence[Any] | NDArray[Any]
"""A truth value for each person or canary."""


class Table:
    """A published table of records about people.

    `quasi_identifiers` are the columns that an attacker may know from elsewhere, `sensitive` the one that is to stay
    secret. `register` is what the attacker knows: a list of people with the same columns and their `identity`. `truth`
    is the identity of each published record, or the sensitive value of each person of the register where the table does
    not show single records; it serves scoring alone. Without it a link to the register is a candidate and no bound,
    because a record may be that of somebody else, unless `complete_register` says that everybody in the table is in the
    register. `other` is another published table about people of the register.

    Where a person has several rows, `entity` is the published column that says whose each is: people are counted, not
    rows, and the rows of one are matched together.
    Tables of ratings, purchases or visits have a row for each: `item` says what it is about, `value` how much and
    `when` at what time; `register` then holds such rows with the `identity` in the place of the entity, and `truth`
    is a mapping from identities to entities.
    """

    def __init__(
        self,
        records: object,
        *,
        quasi_identifiers: Sequence[str] | None = None,
        sensitive: str | None = None,
        register: object = None,
        identity: str | None = None,
        truth: Sequence[Any] | Mapping[Any, Any] | None = None,
        complete_register: bool = False,
        other: Table | None = None,
        entity: str | None = None,
        item: str | None = None,
        value: str | None = None,
        when: str | None = None,
    ) -> None:
        self.records = Records.of(records)
        self.quasi_identifiers = None if quasi_identifiers is None else _names(quasi_identifiers)
        sensitive, identity, entity, item, value, when = (
            None if name is None else str(name) for name in (sensitive, identity, entity, item, value, when)
        )
        self.sensitive, self.identity, self.other = sensitive, identity, other
        self.complete_register = bool(complete_register)
        self.entity, self.item, self.value, self.when = entity, item, value, when
        self.register = None if register is None else Records.of(register)
        self.truth = truth if truth is None or isinstance(truth, Mapping) else list(truth)
        require_single("truth", self.truth.values() if isinstance(self.truth, Mapping) else self.truth or ())
        self.records.require([*(self.quasi_identifiers or ()), *_stated(sensitive, entity, item, value, when)])
        if self.register is not None:
            self.register.require([*(self.quasi_identifiers or ()), *_stated(identity, item, value, when)])
        if other is not None and not isinstance(other, Table):
            raise WrongType("other must be a Table", name="other", value=other)


class Statistics:
    """Published statistics about a group of people: tables of counts, means and medians, or means of many attributes.

    Made by `Statistics.of_tables`, whose statistics a solver turns into all databases that fit them, or by
    `Statistics.of_means`, which asks whether a person is in the group.
    """

    def __init__(self) -> None:
        self.tables: Any = None
        self.means: Numbers | None = None
        self.reference: Numbers | None = None
        self.members: Numbers | None = None
        self.outsiders: Numbers | None = None

    @classmethod
    def of_tables(cls, tables: object) -> Statistics:
        """Return the target of published counts, means and medians (`tacit.attack.PublishedTables`)."""
        from tacit.attack.table_reconstruction import PublishedTables

        made = cls()
        if not isinstance(tables, PublishedTables):
            raise WrongType("tables must be PublishedTables", name="tables", value=tables)
        made.tables = tables
        return made

    @classmethod
    def of_means(cls, means: Any, reference: Any, *, members: Any, outsiders: Any) -> Statistics:
        """Return the target of means over a group, beside those of the population (`reference`).

        `members` and `outsiders` are rows of people inside and outside of the group, with the same attributes; they are
        whom the attacker asks about, and which is which is used for scoring alone.
        """
        made = cls()
        made.means, made.reference = _vector("means", means), _vector("reference", reference)
        made.members, made.outsiders = matrix_of("members", members), matrix_of("outsiders", outsiders)
        width = len(made.means)
        if {len(made.reference), made.members.shape[1], made.outsiders.shape[1]} != {width}:
            raise InvalidInput(
                f"means, reference, members and outsiders must have the same {width} attributes", name="means"
            )
        return made


Pair: TypeAlias = tuple[Any, Any]
Propose: TypeAlias = Callable[[np.random.Generator, Pair | None], Pair]


def neighbouring_lists(length: int, low: float, high: float, *, replaces: bool = False) -> Propose:
    """Return a function that proposes lists of numbers of which one person's is missing, or another, in the second.

    Without a best pair the numbers are uniform or at an end of the range; near one, some of them are drawn again.
    """
    size, least, most = whole("length", length, at_least=1), float(low), float(high)
    if not least < most:
        raise OutOfRange("low must be below high", name="low", value=low)

    def propose(random: np.random.Generator, best: Pair | None) -> Pair:
        drawn = np.where(
            random.random(size) < 0.5, random.choice([least, most], size), random.uniform(least, most, size)
        )
        values = drawn if best is None else np.where(random.random(size) < 2 / size, drawn, best[0])
        place = int(random.integers(size))
        if not replaces:
            return values, np.delete(values, place)
        other = values.copy()
        other[place] = least if values[place] > (least + most) / 2 else most
        return values, other

    return propose


class Mechanism:
    """A mechanism with two neighbouring inputs.

    `release` is a function of an input, or of an input and a random generator of numpy, or an object with a method
    `release`; one with a true attribute `releases_arrays` adds independent noise to every place of an array. With
    `many=True` it is a function of an input and a number, and returns that many independent outputs.
    `neighbours` may be a list of pairs in the place of `x` and `neighbour`; the pair whose outputs differ most is then
    sought. It may also be a function of a random generator and the best pair so far (at first None) that proposes the
    next pair, such as `neighbouring_lists`.
    """

    def __init__(
        self,
        release: Any,
        x: Any = None,
        neighbour: Any = None,
        *,
        neighbours: Sequence[Pair] | Propose | None = None,
        many: bool = False,
        samples: int | None = None,
    ) -> None:
        self.release = release.release if hasattr(release, "release") else release
        if not callable(self.release):
            raise WrongType("a mechanism must be a function or have a method release", name="mechanism")
        self.propose = neighbours if callable(neighbours) else None
        self.pairs: list[Pair] = []
        if neighbours is None:
            self.pairs = [(x, neighbour)]
        elif not callable(neighbours):
            self.pairs = _pairs(neighbours)
        if not self.pairs and self.propose is None:
            raise EmptyInput("there must be at least one pair of neighbours", name="neighbours")
        self.many = many
        self.samples = None if samples is None else whole("samples", samples)
        self._vectorizes = getattr(release, "releases_arrays", False) and not many

    def first_pair(self, random: np.random.Generator) -> Pair:
        """Return a pair of neighbours without a search."""
        return self.pairs[0] if self.propose is None else self.propose(random, None)

    def interleaved(self, inputs: Sequence[Any], count: int, random: np.random.Generator) -> list[Any]:
        """Return so many outputs for each input, drawn in random order: what a call leaves behind tells no input.

        Where one call returns many outputs, they are independent by what the caller states.
        """
        if self.many or self._vectorizes:
            return [self.sample(x, count, random) for x in inputs]
        found: list[list[Any]] = [[] for _ in inputs]
        for place in random.permutation(np.repeat(np.arange(len(inputs)), count)):
            found[place].extend(self.sample(inputs[place], 1, random))
        return found

    def sample(self, x: Any, count: int, random: np.random.Generator) -> list[Any] | NDArray[Any]:
        """Return independent outputs for an input."""
        if self.many:
            found = _outputs(self.release(x, count))
            if len(found) != count:
                raise InvalidInput(f"the mechanism returned {len(found)} outputs instead of {count}", name="mechanism")
            return found
        if self._vectorizes and isinstance(x, int | float | np.number):
            return _outputs(self.release(np.full(count, x)))  # array noise is independent in each place
        if _takes_random(self.release):
            return _outputs([self.release(x, random) for _ in range(count)])
        return _outputs([self.release(x) for _ in range(count)])


class Model:
    """The scores of canaries: records that were put into a training, or left out, by independent fair coins.

    A score is higher the more likely a canary was in the training, by whatever the attacker sees of the model. With
    `trainings="one"` all canaries were drawn for one training; with "independent" each score is of a training of its
    own. `noise="gaussian"` states that all noise of the training is Gaussian and no record was sampled, so that its
    trade-off curve is that of one Gaussian release.
    """

    def __init__(
        self,
        scores: Any,
        present: Bits,
        *,
        trainings: Literal["one", "independent"] = "one",
        noise: Literal["", "gaussian"] = "",
    ) -> None:
        self.scores = _vector("scores", scores)
        self.present = np.asarray([bool(one) for one in present])
        if len(self.scores) != len(self.present):
            raise InvalidInput("there must be one score for each canary", name="scores")
        if trainings not in ("one", "independent"):
            raise OutOfRange('trainings must be "one" or "independent"', name="trainings", value=trainings)
        if noise not in ("", "gaussian"):
            raise OutOfRange('noise must be "gaussian" where it is stated', name="noise", value=noise)
        self.noise = noise
        self.one_run = True if trainings == "one" else None
        self.many_runs = None if trainings == "one" else True


def _pairs(neighbours: Any) -> list[Pair]:
    """Return pairs of neighbours, or raise WrongType."""
    if not isinstance(neighbours, Iterable) or isinstance(neighbours, str | bytes):
        raise WrongType("neighbours must be a list of pairs, or a function", name="neighbours", value=neighbours)
    found = list(neighbours)
    if not all(isinstance(one, tuple | list | np.ndarray) and len(one) == 2 for one in found):
        raise WrongType("neighbours must be a list of pairs of inputs", name="neighbours")
    return [(one[0], one[1]) for one in found]


def _outputs(values: Any) -> list[Any] | NDArray[Any]:
    if isinstance(values, np.ndarray) and values.ndim:
        return values
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | np.ndarray):
        raise WrongType(
            f"a mechanism that returns many outputs must return a list or an array, not {type(values).__name__}",
            name="mechanism",
        )
    return list(values)


def _takes_random(function: Callable[..., Any]) -> bool:
    try:
        needed = [
            one
            for one in inspect.signature(function).parameters.values()
            if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return False
    return len(needed) >= 2


def _names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise WrongType("quasi_identifiers must be a list of names", name="quasi_identifiers", value=names)
    if not names:
        raise EmptyInput("quasi_identifiers must name at least one column", name="quasi_identifiers")
    return tuple(map(str, names))


def _stated(*names: str | None) -> list[str]:
    return [name for name in names if name is not None]


def _floats(name: str, values: Any) -> Numbers:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise WrongType(f"{name} must hold finite numbers, as many in each row", name=name) from None


def _vector(name: str, values: Any) -> Numbers:
    found = _floats(name, values)
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
        raise WrongType(f"{name} must be a list of finite numbers", name=name)
    return found


def matrix_of(name: str, values: Any) -> Numbers:
    """Return rows of finite numbers, or raise WrongType."""
    found = _floats(name, values)
    if found.ndim != 2 or not found.size or not np.isfinite(found).all():
        raise WrongType(f"{name} must be rows of finite numbers", name=name)
    return found
