"""DuckDB inside this process: files are read where they lie, and prepared once where that makes questions fast.

    engine      the Engine: what is registered, and which version of it
    sources     the files behind a source: where they are, what they hold, how DuckDB scans them
    csv_files   the form of CSV files, and scans of them that no line can break
    recoding    copies in UTF-8 of CSV files that are not
    kinds       types of DuckDB, and casts that never fail
    relations   the SELECT that shows a table, with the unit of each row
    prepared    rows stored for questions: immutable files, made aside and renamed
    connecting  settings: no network, no extensions, no files but the registered ones
    resources   how much memory and disk a connection may take
    running     one statement: its time limit, cancelling, progress, and its answer by columns
    names       names and texts in SQL

For callers there is `DuckDBEngine`.
"""

from tacit.engines.duckdb.engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
