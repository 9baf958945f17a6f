"""DuckDB inside this process: files are read where they are, and stored once where that makes queries fast.

    engine       the Engine: what is registered, and which version of it
    sources      the files behind a source: where they are, their columns, how DuckDB scans them
    csv_files    the format of CSV files, copies of them in UTF-8, and scans of them that no line can break
    csv_quotes   the check that quotes and comments of a CSV file affect no other row
    kinds        types of DuckDB, and casts that never fail
    relations    the SELECT that shows a table, with the unit of each row
    prepared     rows stored for queries in immutable files; files whose rows are numbered
    connections  settings: no network, no extensions, registered files only; limits on memory and disk
    execution    one statement: its time limit, cancellation, progress, and its answer by columns

For callers there is `DuckDBEngine`.
"""

from tacit.engines.duckdb.engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
