"""Tables of PostgreSQL: how an index of the harness is made, and the statements that search a table."""

from collections.abc import Iterable, Sequence
from typing import Any

_TYPES = {"id": "int8", "content": "vector", "words": "text"}

_FUSED = """
WITH near AS (SELECT id, row_number() OVER (ORDER BY score DESC, id) AS rank FROM ({}) AS hits),
matching AS (SELECT id, row_number() OVER (ORDER BY score DESC, id) AS rank FROM ({}) AS hits)
SELECT id, coalesce(1 / (%(c)s::float8 + near.rank), 0) + coalesce(1 / (%(c)s::float8 + matching.rank), 0) AS score
FROM near FULL JOIN matching USING (id) ORDER BY score DESC, id LIMIT %(limit)s
"""

_NEAREST = "SELECT {}, {} - ({} {} %(vector)s) AS score FROM {} ORDER BY {} {} %(vector)s LIMIT %({})s"

_MATCHING = """
SELECT {}, {}({}, %(words)s::tsquery, {}) AS score FROM {} WHERE {} @@ %(words)s::tsquery
ORDER BY score DESC{} LIMIT %({})s
"""


def fill(connection: Any, name: str, columns: Sequence[str], dimensions: int, rows: Iterable[tuple[Any, ...]]) -> None:
    """Copy rows to a new table, in place of one that is there; `words` are texts until they are indexed."""
    from psycopg import sql

    table = sql.Identifier(name)
    types = {**_TYPES, "content": f"vector({dimensions})"}
    listed = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(one), sql.SQL(types[one])) for one in columns)
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    connection.execute(sql.SQL("CREATE TABLE {} ({}, PRIMARY KEY (id))").format(table, listed))
    statement = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(table)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types([_TYPES[one] for one in columns])
        for row in rows:
            copy.write_row(row)


def index_words(connection: Any, name: str, configuration: str) -> None:
    """Turn texts into a `tsvector` by a text search configuration, or read them as one if it is empty; index it."""
    from psycopg import sql

    table, made = sql.Identifier(name), sql.SQL("words::tsvector")
    if configuration:
        made = sql.SQL("to_tsvector({}::regconfig, words)").format(sql.Literal(configuration))
    connection.execute(sql.SQL("ALTER TABLE {} ALTER words TYPE tsvector USING {}").format(table, made))
    connection.execute(sql.SQL("CREATE INDEX ON {} USING gin (words)").format(table))


def index_graph(connection: Any, name: str, m: int, ef_construction: int) -> None:
    """Build an HNSW index for inner products."""
    from psycopg import sql

    statement = "CREATE INDEX ON {} USING hnsw (content vector_ip_ops) WITH (m = {}, ef_construction = {})"
    connection.execute(sql.SQL(statement).format(sql.Identifier(name), m, ef_construction))


def nearest(columns: Sequence[str], table: Sequence[str], vector: str, similarity: str, limit: str) -> Any:
    """The rows with the vectors most similar to `%(vector)s`, with their inner products or cosines."""
    from psycopg import sql

    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    content, way = sql.Identifier(vector), sql.SQL("<=>" if similarity == "cosine" else "<#>")
    best = 1 if similarity == "cosine" else 0
    return sql.SQL(_NEAREST).format(listed, best, content, way, sql.Identifier(*table), content, way, sql.SQL(limit))


def matching(columns: Sequence[str], table: Sequence[str], words: Any, rank: tuple[str, int], limit: str) -> Any:
    """The rows whose `words`, a `tsvector`, satisfy `%(words)s`; `rank` is the function and its normalization."""
    from psycopg import sql

    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    function, normalization = sql.SQL(rank[0]), rank[1]
    ties = sql.SQL(", id" if columns == ["id"] else "")
    return sql.SQL(_MATCHING).format(
        listed, function, words, normalization, sql.Identifier(*table), words, ties, sql.SQL(limit)
    )


def fused(near: Any, matched: Any) -> Any:
    """The rows of two statements with ids and scores, by the sums of their reciprocal ranks."""
    from psycopg import sql

    return sql.SQL(_FUSED).format(near, matched)
