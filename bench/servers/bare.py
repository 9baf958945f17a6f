"""A bare FastAPI application that returns the bytes of a file: `python -m bench.servers.bare FILE PORT`.

It runs under the settings of uvicorn that tacit's server runs under, and does nothing of what tacit does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request, Response


def application(body: bytes) -> FastAPI:
    """Return an application that reads a request's body and answers with these bytes."""
    app = FastAPI()

    @app.post("/v1/queries")
    async def _queries(request: Request) -> Response:
        await request.body()
        return Response(body, media_type="application/json")

    @app.get("/readyz")
    async def _ready() -> dict[str, str]:
        return {"status": "ready"}

    return app


if __name__ == "__main__":
    uvicorn.run(
        application(Path(sys.argv[1]).read_bytes()),
        port=int(sys.argv[2]),
        ws="none",
        timeout_keep_alive=15,
        server_header=False,
        access_log=False,
        log_config=None,
        proxy_headers=False,
    )
