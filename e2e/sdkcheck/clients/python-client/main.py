"""The client that openapi-python-client makes, used."""

import importlib
import os
import pkgutil

import parley_api
from parley_api import AuthenticatedClient
from parley_api.api.proposals import list_proposals, submit_proposal
from parley_api.models import Proposal, ProposalList, ProposalSubmission, ProposalSubmissionCategory

for module in pkgutil.walk_packages(parley_api.__path__, "parley_api."):
    importlib.import_module(module.name)

client = AuthenticatedClient(base_url=os.environ["PARLEY_URL"], token=os.environ["PARLEY_KEY"])
for i in range(3):
    made = submit_proposal.sync("main", client=client, body=ProposalSubmission(
        title=f"Retry webhooks {i}", category=ProposalSubmissionCategory.RELIABILITY,
        problem="A delivery that fails once is lost.", suggested_fix="Retry it.",
    ))
    assert isinstance(made, Proposal) and made.status == "open", made
print("ok submit")

first = list_proposals.sync("main", client=client, limit=2)
assert isinstance(first, ProposalList), first
assert len(first.proposals) == 2 and first.total == 3 and first.next_cursor, first
print("ok list")

second = list_proposals.sync("main", client=client, limit=2, page=2)
assert isinstance(second, ProposalList), second
assert len(second.proposals) == 1 and second.next_cursor is None, second
assert second.proposals[0].id not in [p.id for p in first.proposals]
print("ok page")

again = list_proposals.sync("main", client=client, limit=2, cursor=first.next_cursor)
assert isinstance(again, ProposalList), again
assert [p.id for p in again.proposals] == [p.id for p in second.proposals], again
print("ok cursor")
