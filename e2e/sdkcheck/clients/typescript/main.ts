// The types that openapi-typescript makes, used with openapi-fetch.
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

type Page = components['schemas']['ProposalList'];

const env = (name: string): string => process.env[name] ?? '';
const check = (good: boolean, what: unknown): void => {
  if (!good) throw new Error(JSON.stringify(what));
};

const api = createClient<paths>({ baseUrl: env('PARLEY_URL'), headers: { Authorization: `Bearer ${env('PARLEY_KEY')}` } });
for (let i = 0; i < 3; i++) {
  const { data, error } = await api.POST('/api/v1/orgs/{org}/proposals', {
    params: { path: { org: 'main' } },
    body: { title: `Retry webhooks ${i}`, category: 'reliability', problem: 'A delivery that fails once is lost.', suggested_fix: 'Retry it.' },
  });
  check(data?.status === 'open', error);
}
console.log('ok submit');

async function list(query: { page?: number; cursor?: string }): Promise<Page> {
  const { data, error } = await api.GET('/api/v1/orgs/{org}/proposals', { params: { path: { org: 'main' }, query: { ...query, limit: 2 } } });
  if (data === undefined) throw new Error(error?.detail);
  return data;
}

const first = await list({});
check(first.proposals.length === 2 && first.total === 3 && first.next_cursor !== null, first);
console.log('ok list');

const second = await list({ page: 2 });
check(second.proposals.length === 1 && second.next_cursor === null, second);
check(second.proposals[0]?.id !== first.proposals[0]?.id, second);
console.log('ok page');

const again = await list({ cursor: first.next_cursor ?? '' });
check(again.proposals.length === 1 && again.proposals[0]?.id === second.proposals[0]?.id, again);
console.log('ok cursor');
