"""Addresses in a catalog: a secret in one is refused in every spelling, is written nowhere and repeated nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.curator.catalog import Catalog
from tacit.curator.table_sources import parse_source, source_of, source_text
from tacit.engines import PostgresEngine, Source, SparkEngine
from tacit.privacy.errors import InvalidInput, NotPermitted, SourceMissing, TacitError

SECRET = "hunter2"

WITH_SECRETS = [
    f"postgresql://ana:{SECRET}@db/care#public.visits",
    f"postgresql://ana%3A{SECRET}@db/care#public.visits",
    f"postgresql://ana%253A{SECRET}@db/care#public.visits",
    f"postgresql://ana\uff1a{SECRET}@db/care#public.visits",
    f"postgresql://ana:{SECRET}%40db/care#public.visits",
    f"postgresql://:{SECRET}@db/care#public.visits",
    f"postgresql://ana:12#{SECRET}@db/care#public.visits",
    f"postgresql://ana:12#{SECRET}@db",
    f"postgresql://db/care?password={SECRET}#public.visits",
    f"postgresql://db/care?pass%77ord={SECRET}#public.visits",
    f"postgresql://db/care?%70%61%73%73%77%6f%72%64={SECRET}#public.visits",
    f"postgresql://db/care?PassWord={SECRET}#public.visits",
    f"postgresql://db/care?\uff50assword={SECRET}#public.visits",
    f"postgresql://db/care?sslmode=require&sslpassword={SECRET}#public.visits",
    f"postgresql://db/care?oauth_client_secret={SECRET}#public.visits",
    f"postgresql://db/care?scram_client_key={SECRET}#public.visits",
    f"postgresql://db/care?options=-c%20my.key%3D{SECRET}#public.visits",
    f"postgresql://db/care?sslmode=require;password={SECRET}#public.visits",
    f"postgresql://db/care?dbname=postgresql%3A%2F%2Fana%3A{SECRET}%40db#public.visits",
    f"postgresql://db/care%20password%3D{SECRET}#public.visits",
    f"postgresql://db/care?{SECRET}#public.visits",
    f"POSTGRESQL://ana:{SECRET}@db/care#public.visits",
    f"postgres://ana:{SECRET}@db/care#public.visits",
    f"jdbc:postgresql://db/care?password={SECRET}#public.visits",
    f"host=db user=ana password={SECRET}",
    f"host=db user=ana password={SECRET}.duckdb#visits",
    f"ana:{SECRET}@db/visits.parquet",
    f"sc://spark:15002/;token={SECRET}#care.visits",
    f"sc://spark:15002/;use_ssl=true;tok%65n={SECRET}#care.visits",
    f"sc://spark:15002/;TOKEN={SECRET}#care.visits",
    f"sc://spark:15002/;x-api-key={SECRET}#care.visits",
    f"sc://spark:15002/;user_id=ana;authorization=Bearer%20{SECRET}#care.visits",
    f"sc://ana:{SECRET}@spark:15002#care.visits",
    f"sc://spark:15002/?token={SECRET}#care.visits",
    f"sc://spark:15002/{SECRET}#care.visits",
    f"spark://ana:{SECRET}@spark:7077#care.visits",
    f"spark://spark:7077?token={SECRET}#care.visits",
    f"spark:local#parquet:s3a://KEY:{SECRET}@bucket/visits",
    f"spark:local#parquet:s3a://{SECRET}@bucket/visits",
    f"spark:local#parquet:s3a://KEY%3A{SECRET}%40bucket/visits",
    f"spark:local#parquet:S3A://KEY:{SECRET}@bucket/visits",
    f"spark:local#parquet:s3a:KEY:{SECRET}@bucket/visits",
    f"spark:local#parquet:abfss://box:{SECRET}@account.dfs.core.windows.net/visits",
    f"spark:local#parquet:wasbs://box@account.blob.core.windows.net/visits?sig={SECRET}",
    f"spark:local#parquet:https://store/visits?sv=1&sig={SECRET}",
    f"spark:local#parquet:hdfs://ana:{SECRET}@name:8020/visits",
    f"spark:local;token={SECRET}#care.visits",
    f"s3a://KEY:{SECRET}@bucket/visits.parquet",
]
PLAIN = [
    "postgresql://ana@db.clinic:5432/care#public.visits",
    "postgresql:///care#public.visits",
    "postgresql://db1:5432,db2:5433/care?target_session_attrs=read-only#visits",
    "postgresql://ana%40corp@db/care?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem#visits",
    "postgresql://ana@/care?host=/var/run/postgresql&port=5432#visits",
    "postgresql://%2Fvar%2Frun%2Fpostgresql/care#visits",
    "postgresql://[::1]:5432/care?connect_timeout=3&application_name=tacit#visits",
    'postgresql://ana@db/care#public."odd @ name"',
    "env:CLINIC_DB#public.visits",
    "file:~/clinic.address#public.visits",
    "service:clinic#public.visits",
    "sc://spark.clinic:15002#care.visits",
    "sc://spark.clinic:15002/;use_ssl=true;user_id=ana#lake.care.visits",
    "spark://spark:7077#care.visits",
    "spark://one:7077,two:7077#care.visits",
    "spark:env:CLINIC_SPARK#care.visits",
    "spark:file:/etc/tacit/spark.address#care.visits",
    "spark:local[2]#parquet:/data/year=2024/*.parquet",
    "spark:local#parquet:s3a://bucket/visits/*.parquet",
    "spark:local#parquet:abfss://box@account.dfs.core.windows.net/visits",
    "spark:local#parquet:hdfs://name:8020/visits/part-?.parquet",
]


def everything(error: BaseException) -> str:
    """Return all that an error could show."""
    parts: list[str] = []
    one: BaseException | None = error
    while one is not None:
        parts += [str(one), repr(one), repr(vars(one)), repr(one.args)]
        one = one.__cause__ or one.__context__
    return " ".join(parts)


@pytest.mark.parametrize("text", WITH_SECRETS)
def test_a_secret_in_an_address_is_refused_and_not_repeated(text: str, tmp_path: Path) -> None:
    with pytest.raises(TacitError) as caught:
        source_of(text, folder=tmp_path)
    assert SECRET not in everything(caught.value)
    if "://" in text or text.startswith("spark:"):  # others are names of files, once a catalog holds them
        with pytest.raises(TacitError) as caught:
            parse_source(text, None, tmp_path)
        assert SECRET not in everything(caught.value)


@pytest.mark.parametrize("text", [one for one in WITH_SECRETS if one.startswith(("postgres", "sc:", "spark:"))])
def test_an_engine_refuses_the_same_addresses(text: str) -> None:
    place, _, table = text.partition("#")

    def described() -> None:
        if place.startswith("postgres"):
            PostgresEngine(place, salt=1).describe(Source("postgres", place, table))
        else:
            home = place if "://" in place else place.removeprefix("spark:")
            SparkEngine(home, salt=1).describe(Source("spark", home, table))

    with pytest.raises(TacitError) as caught:
        described()
    assert SECRET not in everything(caught.value)


@pytest.mark.parametrize("text", PLAIN)
def test_an_address_without_secrets_is_taken_and_written_as_it_is(text: str, tmp_path: Path) -> None:
    found = source_of(text, folder=tmp_path)
    assert source_text(found, tmp_path) == text
    assert parse_source(text, None, tmp_path) == found


def test_a_catalog_that_holds_a_secret_is_refused_without_repeating_it(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text(
        f'[tables.visits]\nsource = "sc://spark:15002/;token={SECRET}#care.visits"\nunit = "id"\n'
        '[tables.visits.columns]\nid = { kind = "integer" }\n'
    )
    with pytest.raises(TacitError) as caught:
        Catalog.open(tmp_path)
    assert SECRET not in everything(caught.value)


def test_an_address_of_spark_is_read_where_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tacit.engines.spark.sessions import address

    monkeypatch.setenv("CLINIC_SPARK", f"sc://spark:15002/;token={SECRET}")
    assert address("env:CLINIC_SPARK") == f"sc://spark:15002/;token={SECRET}"
    assert SECRET not in repr(SparkEngine("env:CLINIC_SPARK", salt=1).place)
    monkeypatch.setenv("CLINIC_SPARK", f"https://ana:{SECRET}@spark")
    with pytest.raises(InvalidInput) as caught:
        address("env:CLINIC_SPARK")
    assert SECRET not in everything(caught.value)
    monkeypatch.delenv("CLINIC_SPARK")
    with pytest.raises(SourceMissing, match="CLINIC_SPARK"):
        address("env:CLINIC_SPARK")
    file = tmp_path / "address"
    file.write_text(f"sc://spark:15002/;token={SECRET}\n")
    for mode in (0o640, 0o604, 0o620, 0o660):
        file.chmod(mode)
        with pytest.raises(NotPermitted, match="chmod 600"):
            address(f"file:{file}")
    file.chmod(0o600)
    assert address(f"file:{file}") == f"sc://spark:15002/;token={SECRET}"
    with pytest.raises(SourceMissing):
        address(f"file:{tmp_path}")
