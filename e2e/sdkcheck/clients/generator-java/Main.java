import dev.parley.ApiClient;
import dev.parley.api.ProposalsApi;
import dev.parley.model.Proposal;
import dev.parley.model.ProposalList;
import dev.parley.model.ProposalSubmission;

/** The client that openapi-generator makes for Java, used. */
public class Main {
    static ProposalsApi api;

    public static void main(String[] args) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("PARLEY_URL"));
        client.setRequestInterceptor(r -> r.header("Authorization", "Bearer " + System.getenv("PARLEY_KEY")));
        api = new ProposalsApi(client);
        for (int i = 0; i < 3; i++) {
            Proposal made = api.submitProposal("main", new ProposalSubmission()
                    .title("Retry webhooks " + i).category(ProposalSubmission.CategoryEnum.RELIABILITY)
                    .problem("A delivery that fails once is lost.").suggestedFix("Retry it."), null);
            check(made.getStatus() == Proposal.StatusEnum.OPEN, made);
        }
        System.out.println("ok submit");

        ProposalList first = list(null, null);
        check(first.getProposals().size() == 2 && first.getTotal() == 3 && first.getNextCursor() != null, first);
        System.out.println("ok list");

        ProposalList second = list(2L, null);
        check(second.getProposals().size() == 1 && second.getNextCursor() == null, second);
        check(!second.getProposals().get(0).getId().equals(first.getProposals().get(0).getId()), second);
        System.out.println("ok page");

        ProposalList again = list(null, first.getNextCursor());
        check(again.getProposals().size() == 1, again);
        check(again.getProposals().get(0).getId().equals(second.getProposals().get(0).getId()), again);
        System.out.println("ok cursor");
    }

    static ProposalList list(Long page, String cursor) throws Exception {
        return api.listProposals("main", null, null, null, null, null, null, null, null, null, page, 2L, cursor, null);
    }

    static void check(boolean good, Object what) {
        if (!good) {
            throw new AssertionError(what);
        }
    }
}
