"""The client of a server: the queries and objects of `tacit.Curator`, over REST.

    client = tacit.connect("http://127.0.0.1:8321", token="file:token.txt")
    client.preview(sql, epsilon=0.5)                  # what it would charge; spends nothing
    release = client.sql(sql, epsilon=0.5)            # rows, intervals, cost, card, permit
    client.stats.mean(client.table("visits")["age"], epsilon=0.1)
    client.budget("visits").remaining()

Answers, budgets and errors have the surface of those of `tacit.Curator`. `tacit.client.dbapi` is the same as a cursor
of DB-API 2.
"""

from tacit.privacy.extras import import_extra

for _library in ("httpx", "pydantic"):
    import_extra(_library, extra="client", purpose="tacit.client")

from tacit.client.answers import RemotePermit, RemotePreview, RemoteRelease
from tacit.client.client import Client, connect
from tacit.client.resources import RemoteBudget, RemoteColumn, RemoteTable
from tacit.client.transport import InsecureWarning

__all__ = [
    "Client",
    "InsecureWarning",
    "RemoteBudget",
    "RemoteColumn",
    "RemotePermit",
    "RemotePreview",
    "RemoteRelease",
    "RemoteTable",
    "connect",
]
