"""Who gets what: every request of the application, on what is one's own, another's, hidden or missing, by everybody.

Written by hand from the roles' description, to be read beside it; nothing here is taken from `roles.py`. A number is
the status of the answer. 403 and 404 are refusals that must be on record; a 404 must look as if the thing were not
there. `---` is a 404 about what really is not there, which is no refusal.
"""

from __future__ import annotations

from typing import Final

WIDTH: Final = 46
MISSING: Final = "---"

MATRIX: Final = """
                                              own | curator         | analyst         | auditor         | kno nob
                                                  | all vis sec lab | all vis sec lab | all vis sec lab |
GET /                                         200 | 200 200 200 200 | 200 200 200 200 | 200 200 200 200 | 200 200
GET /openapi.json                             200 | 200 200 200 200 | 200 200 200 200 | 200 200 200 200 | 200 200
GET /healthz                                  200 | 200 200 200 200 | 200 200 200 200 | 200 200 200 200 | 200 200
GET /readyz                                   200 | 200 200 200 200 | 200 200 200 200 | 200 200 200 200 | 200 200
GET /metrics                                  200 | 403 403 403 403 | 403 403 403 403 | 200 403 403 403 | 403 401
POST /v1/login                                200 | 200 200 200 200 | 200 200 200 200 | 200 200 200 200 | 200 200
POST /v1/logout                               204 | 204 204 204 204 | 204 204 204 204 | 204 204 204 204 | 204 401
GET /v1/me                                    200 | 200 200 200 200 | 200 200 200 200 | 200 200 200 200 | 200 401
GET /v1/oidc/start                            501 | 501 501 501 501 | 501 501 501 501 | 501 501 501 501 | 501 501
GET /v1/oidc/callback                         501 | 501 501 501 501 | 501 501 501 501 | 501 501 501 501 | 501 501

GET /v1/people                                200 | 403 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/people                               201 | 403 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
DELETE /v1/people/{name} another's            204 | 403 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
DELETE /v1/people/{name} missing              --- | 403 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/people/{name}/grants another's       201 | 403 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/people/{name}/grants own             201 | 403 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
DELETE /v1/people/{name}/grants another's     200 | 403 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
DELETE /v1/people/{name}/grants own           200 | 403 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401

GET /v1/tokens                                200 | 200 200 200 200 | 200 200 200 200 | 200 200 200 200 | 403 401
POST /v1/tokens own                           201 | 201 201 201 201 | 201 201 201 201 | 201 201 201 201 | 403 401
POST /v1/tokens another's                     201 | 403 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
DELETE /v1/tokens/{token_id} own              204 | 204 204 204 204 | 204 204 204 204 | 204 204 204 204 | 404 401
DELETE /v1/tokens/{token_id} another's        204 | 404 404 404 404 | 404 404 404 404 | 404 404 404 404 | 404 401
DELETE /v1/tokens/{token_id} missing          --- | --- --- --- --- | --- --- --- --- | --- --- --- --- | --- 401

GET /v1/tables                                200 | 200 200 200 200 | 200 200 200 200 | 200 200 200 200 | 200 401
POST /v1/tables on visits                     201 | 201 201 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/tables on secret                     201 | 201 403 201 403 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/tables over labs                     201 | 201 201 403 201 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/tables over secret                   201 | 201 403 201 403 | 403 403 403 403 | 403 403 403 403 | 403 401
GET /v1/tables/{name} visits                  200 | 200 200 404 404 | 200 200 404 404 | 200 200 404 404 | 404 401
GET /v1/tables/{name} labs                    200 | 200 200 404 200 | 200 200 404 200 | 200 200 404 200 | 404 401
GET /v1/tables/{name} secret                  200 | 200 404 200 404 | 200 404 200 404 | 200 404 200 404 | 404 401
GET /v1/tables/{name} missing                 --- | --- --- --- --- | --- --- --- --- | --- --- --- --- | --- 401
POST /v1/tables/{name}/refresh of visits      200 | 200 200 404 404 | 403 403 404 404 | 403 403 404 404 | 404 401
POST /v1/tables/{name}/refresh of secret      200 | 200 404 200 404 | 403 404 403 404 | 403 404 403 404 | 404 401
DELETE /v1/tables/{name} of visits            204 | 204 204 404 404 | 403 403 404 404 | 403 403 404 404 | 404 401
DELETE /v1/tables/{name} of secret            204 | 204 404 204 404 | 403 404 403 404 | 403 404 403 404 | 404 401

GET /v1/budgets                               200 | 200 200 200 200 | 200 200 200 200 | 200 200 200 200 | 200 401
POST /v1/budgets of a new one                 201 | 201 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/budgets of visits                    409 | 409 409 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/budgets of secret                    409 | 409 403 409 403 | 403 403 403 403 | 403 403 403 403 | 403 401
GET /v1/budgets/{dataset} visits              200 | 200 200 404 200 | 200 200 404 200 | 200 200 404 200 | 404 401
GET /v1/budgets/{dataset} secret              200 | 200 404 200 404 | 200 404 200 404 | 200 404 200 404 | 404 401
GET /v1/budgets/{dataset} own cap on visits   200 | 200 200 404 200 | 200 200 404 200 | 200 200 404 200 | 404 401
GET /v1/budgets/{dataset} another's cap       200 | 200 200 404 404 | 404 404 404 404 | 200 200 404 404 | 404 401
GET /v1/budgets/{dataset} missing             --- | --- 404 404 404 | --- 404 404 404 | --- 404 404 404 | 404 401
GET /v1/budgets/{dataset}/report visits       200 | 200 200 404 200 | 200 200 404 200 | 200 200 404 200 | 404 401
GET /v1/budgets/{dataset}/report secret       200 | 200 404 200 404 | 200 404 200 404 | 200 404 200 404 | 404 401
POST /v1/budgets/{dataset}/analysts visits    201 | 201 201 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/budgets/{dataset}/analysts secret    201 | 201 403 201 403 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/budgets/{dataset}/epochs visits      400 | 400 400 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
POST /v1/budgets/{dataset}/epochs periods     201 | 201 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401

POST /v1/preview visits                       200 | 200 200 404 404 | 200 200 404 404 | 403 403 404 404 | 404 401
POST /v1/preview labs                         200 | 200 200 404 200 | 200 200 404 200 | 403 403 404 403 | 404 401
POST /v1/preview secret                       200 | 200 404 200 404 | 200 404 200 404 | 403 404 403 404 | 404 401
POST /v1/preview labs and secret              422 | 422 404 404 404 | 422 404 404 404 | 422 404 404 404 | 404 401
POST /v1/explain visits                       200 | 200 200 404 404 | 200 200 404 404 | 403 403 404 404 | 404 401
POST /v1/explain secret                       200 | 200 404 200 404 | 200 404 200 404 | 403 404 403 404 | 404 401
POST /v1/queries visits                       200 | 200 200 404 404 | 200 200 404 404 | 403 403 404 404 | 404 401
POST /v1/queries labs                         200 | 200 200 404 200 | 200 200 404 200 | 403 403 404 403 | 404 401
POST /v1/queries secret                       200 | 200 404 200 404 | 200 404 200 404 | 403 404 403 404 | 404 401
POST /v1/queries asked before                 200 | 200 404 200 404 | 200 404 200 404 | 403 404 403 404 | 404 401
POST /v1/statistics visits                    200 | 200 200 404 404 | 200 200 404 404 | 403 403 404 404 | 404 401
POST /v1/statistics labs                      200 | 200 200 404 200 | 200 200 404 200 | 403 403 404 403 | 404 401
POST /v1/statistics secret                    200 | 200 404 200 404 | 200 404 200 404 | 403 404 403 404 | 404 401
POST /v1/statistics/preview visits            200 | 200 200 404 404 | 200 200 404 404 | 403 403 404 404 | 404 401
POST /v1/statistics/preview labs              200 | 200 200 404 200 | 200 200 404 200 | 403 403 404 403 | 404 401
POST /v1/statistics/preview secret            200 | 200 404 200 404 | 200 404 200 404 | 403 404 403 404 | 404 401

POST /v1/models visits                        200 | 200 200 404 404 | 200 200 404 404 | 403 403 404 404 | 404 401
POST /v1/models labs                          200 | 200 200 404 200 | 200 200 404 200 | 403 403 404 403 | 404 401
POST /v1/models secret                        200 | 200 404 200 404 | 200 404 200 404 | 403 404 403 404 | 404 401
POST /v1/models/preview visits                200 | 200 200 404 404 | 200 200 404 404 | 403 403 404 404 | 404 401
POST /v1/models/preview secret                200 | 200 404 200 404 | 200 404 200 404 | 403 404 403 404 | 404 401
GET /v1/models                                200 | 200 200 200 200 | 200 200 200 200 | 403 403 403 403 | 403 401
GET /v1/models/{model} own                    200 | 200 200 404 404 | 200 200 404 404 | 403 403 403 403 | 403 401
GET /v1/models/{model} another's              200 | 200 200 404 404 | 404 404 404 404 | 403 403 403 403 | 403 401
GET /v1/models/{model} missing                --- | --- --- --- --- | --- --- --- --- | 403 403 403 403 | 403 401
POST /v1/models/{model}/predictions own       200 | 200 200 404 404 | 200 200 404 404 | 403 403 403 403 | 403 401
POST /v1/models/{model}/predictions another's 200 | 200 200 404 404 | 404 404 404 404 | 403 403 403 403 | 403 401
DELETE /v1/models/{model} own                 204 | 204 204 404 404 | 403 403 404 404 | 403 403 403 403 | 403 401
DELETE /v1/models/{model} another's           204 | 204 204 404 404 | 404 404 404 404 | 403 403 403 403 | 403 401
DELETE /v1/models/{model} missing             --- | --- --- --- --- | --- --- --- --- | 403 403 403 403 | 403 401

GET /v1/requests                              200 | 200 200 200 200 | 200 200 200 200 | 200 200 200 200 | 200 401
POST /v1/requests on visits                   403 | 403 403 403 403 | 201 201 403 201 | 403 403 403 403 | 403 401
POST /v1/requests on secret                   403 | 403 403 403 403 | 201 403 201 403 | 403 403 403 403 | 403 401
POST /v1/requests/{request}/decision visits   200 | 200 200 404 404 | 404 404 404 404 | 403 403 404 404 | 404 401
POST /v1/requests/{request}/decision own      403 | 403 403 404 403 | 403 403 404 403 | 403 403 404 403 | 404 401
POST /v1/requests/{request}/decision missing  --- | --- --- --- --- | --- --- --- --- | --- --- --- --- | --- 401

GET /v1/findings                              200 | 200 200 200 200 | 403 403 403 403 | 200 200 200 200 | 403 401
GET /v1/findings/{finding} visits             200 | 200 200 404 404 | 403 403 403 403 | 200 200 404 404 | 403 401
GET /v1/findings/{finding} secret             200 | 200 404 200 404 | 403 403 403 403 | 200 404 200 404 | 403 401
GET /v1/findings/{finding} missing            --- | --- --- --- --- | 403 403 403 403 | --- --- --- --- | 403 401
POST /v1/findings on visits                   201 | 201 201 403 403 | 403 403 403 403 | 201 201 403 403 | 403 401
POST /v1/findings on secret                   201 | 201 403 201 403 | 403 403 403 403 | 201 403 201 403 | 403 401
POST /v1/findings for a permit of visits      201 | 201 201 404 404 | 403 403 403 403 | 201 201 404 404 | 403 401
POST /v1/findings for a permit of secret      201 | 201 404 201 404 | 403 403 403 403 | 201 404 201 404 | 403 401
POST /v1/findings for a missing permit        --- | --- --- --- --- | 403 403 403 403 | --- --- --- --- | 403 401

GET /v1/releases                              200 | 200 200 200 200 | 200 200 200 200 | 403 403 403 403 | 403 401
GET /v1/releases/{permit} another's           200 | 200 200 404 404 | 404 404 404 404 | 403 403 403 403 | 403 401
GET /v1/releases/{permit} own                 200 | 200 200 404 200 | 200 200 404 200 | 403 403 403 403 | 403 401
GET /v1/releases/{permit} missing             --- | --- --- --- --- | --- --- --- --- | 403 403 403 403 | 403 401
GET /v1/releases/{permit}/card another's      200 | 200 200 404 404 | 404 404 404 404 | 403 403 403 403 | 403 401
GET /v1/releases/{permit}/card own            200 | 200 200 404 200 | 200 200 404 200 | 403 403 403 403 | 403 401
GET /v1/jobs                                  200 | 200 200 200 200 | 200 200 200 200 | 403 403 403 403 | 403 401
GET /v1/jobs/{job} own                        200 | 200 200 404 200 | 200 200 404 200 | 403 403 403 403 | 403 401
GET /v1/jobs/{job} another's                  200 | 404 404 404 404 | 404 404 404 404 | 403 403 403 403 | 403 401
GET /v1/jobs/{job} missing                    --- | --- --- --- --- | --- --- --- --- | 403 403 403 403 | 403 401
DELETE /v1/jobs/{job} own                     202 | 202 202 404 202 | 202 202 404 202 | 403 403 403 403 | 403 401
DELETE /v1/jobs/{job} another's               202 | 404 404 404 404 | 404 404 404 404 | 403 403 403 403 | 403 401

GET /v1/ledger                                200 | 403 403 403 403 | 403 403 403 403 | 200 403 403 403 | 403 401
GET /v1/ledger/verify                         200 | 403 403 403 403 | 403 403 403 403 | 200 403 403 403 | 403 401
GET /v1/ledger/export                         200 | 403 403 403 403 | 403 403 403 403 | 200 403 403 403 | 403 401
GET /v1/ledger/export with answers            200 | 403 403 403 403 | 403 403 403 403 | 403 403 403 403 | 403 401
GET /v1/reservations                          200 | 403 403 403 403 | 403 403 403 403 | 200 403 403 403 | 403 401
GET /v1/audit                                 200 | 403 403 403 403 | 403 403 403 403 | 200 403 403 403 | 403 401
"""


def rows() -> dict[str, list[str]]:
    """Return the cells of each request, in the order of the columns."""
    found = {}
    for line in MATRIX.splitlines():
        if line.startswith(("GET", "POST", "DELETE")):
            found[line[:WIDTH].strip()] = line[WIDTH:].replace("|", " ").split()
    return found
