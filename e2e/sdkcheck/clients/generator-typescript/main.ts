// The client that openapi-generator makes for TypeScript, used.
import { Configuration, ProposalsApi } from './client/index.js';

const env = (name: string): string => process.env[name] ?? '';
const check = (good: boolean, what: unknown): void => {
  if (!good) throw new Error(JSON.stringify(what));
};

const api = new ProposalsApi(new Configuration({ basePath: env('PARLEY_URL'), accessToken: env('PARLEY_KEY') }));
for (let i = 0; i < 3; i++) {
  const made = await api.submitProposal({
    org: 'main',
    proposalSubmission: {
      title: `Retry webhooks ${i}`, category: 'reliability', problem: 'A delivery that fails once is lost.', suggestedFix: 'Retry it.',
    },
  });
  check(made.status === 'open', made);
}
console.log('ok submit');

const first = await api.listProposals({ org: 'main', limit: 2 });
check(first.proposals.length === 2 && first.total === 3 && first.nextCursor !== null, first);
console.log('ok list');

const second = await api.listProposals({ org: 'main', limit: 2, page: 2 });
check(second.proposals.length === 1 && second.nextCursor === null, second);
check(second.proposals[0]?.id !== first.proposals[0]?.id, second);
console.log('ok page');

const again = await api.listProposals({ org: 'main', limit: 2, cursor: first.nextCursor ?? '' });
check(again.proposals.length === 1 && again.proposals[0]?.id === second.proposals[0]?.id, again);
console.log('ok cursor');
