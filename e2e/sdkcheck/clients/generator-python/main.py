"""The client that openapi-generator makes for Python, used."""

import importlib
import os
import pkgutil

import parley_client

for module in pkgutil.walk_packages(parley_client.__path__, "parley_client."):
    importlib.import_module(module.name)

config = parley_client.Configuration(host=os.environ["PARLEY_URL"], access_token=os.environ["PARLEY_KEY"])
with parley_client.ApiClient(config) as client:
    api = parley_client.ProposalsApi(client)
    for i in range(3):
        made = api.submit_proposal("main", parley_client.ProposalSubmission(
            title=f"Retry webhooks {i}", category="reliability",
            problem="A delivery that fails once is lost.", suggested_fix="Retry it.",
        ))
        assert made.status == "open", made
    print("ok submit")

    first = api.list_proposals("main", limit=2)
    assert len(first.proposals) == 2 and first.total == 3 and first.next_cursor, first
    print("ok list")

    second = api.list_proposals("main", limit=2, page=2)
    assert len(second.proposals) == 1 and second.next_cursor is None, second
    assert second.proposals[0].id not in [p.id for p in first.proposals]
    print("ok page")

    again = api.list_proposals("main", limit=2, cursor=first.next_cursor)
    assert [p.id for p in again.proposals] == [p.id for p in second.proposals], again
    print("ok cursor")
