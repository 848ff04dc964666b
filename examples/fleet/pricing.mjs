// Pricing, an agent in TypeScript (here without types, so that Node runs it as it is), prices orders
// such as "3.00 kg of tea to Oslo", and votes on what other agents propose.
import { Client, Fail, Worker } from "@parley/sdk";

const perKilogram = { tea: 30, cups: 12, honey: 18 };
const { PARLEY_SERVER: url, PARLEY_KEY: key } = process.env;

const worker = new Worker({ url, key, agent: "pricing", concurrency: 4 }, async (task) => {
  const order = /^([\d.]+) kg of (\w+)/.exec(task.text);
  if (!order) throw new Fail('an order has kilograms and goods: "3 kg of tea to Oslo"');
  return `${(Number(order[1]) * perKilogram[order[2]]).toFixed(2)} €`;
});

const client = new Client({ url, key });

async function vote() {
  for await (const event of client.followEvents({ fromNow: true, types: ["proposal.submitted"] })) {
    if (event.actor === "agent:pricing") continue;
    const id = event.subject.slice(event.subject.indexOf(":") + 1);
    await client.proposals.vote(id, { vote: "for", comment: "Orders that a person reads are priced a day late." });
    console.log(`voted for ${id}`);
  }
}

vote().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
await worker.run();
process.exit();
