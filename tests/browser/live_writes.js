// Runs in the page of tests/browser/test_live_client.py: writes that are accepted, refused, lost and kept.
async () => {
  const { connect, Refused } = await import('/client/live.js');
  const options = { firstWaitMs: 1, longestWaitMs: 5, url: location.origin };
  const { Replica } = await import('/client/replica.js');
  const client = connect({ ...options, settleMs: 200 });
  const told = [];
  for (const kind of ['refused', 'settled']) client.addEventListener(kind, (event) => told.push([kind, event.detail.write?.stream ?? event.detail.write.stream]));

  const all = client.list({ sort: [['rank', 1]] }, { live: 'writes:0' });
  const open = client.list({ filter: { done: { $ne: true } }, sort: [['rank', 1]], limit: 2 }, { live: 'writes-open:0' });
  await Promise.all([all.ready, open.ready]);
  const ids = (list) => list.documents.map((each) => each._id);
  const found = { first: ids(all) };

  // It is shown before anybody has answered, in every list where it belongs, and in its place.
  const refused = client.send('refused', { id: '9' }, { effects: { id: '9', document: { rank: -1, text: 'new' } } });
  found.shown = [ids(all), ids(open), all.isPending('9')];
  try {
    await refused;
  } catch (error) {
    found.refused = [error instanceof Refused, error.problem.code];
  }
  found.back = [ids(all), all.isPending('9')];

  // Changes, moves and deletions, one after the other.
  const done = [
    client.send('later', { id: '1' }, { effects: { id: '1', set: { rank: 9 } } }),
    client.send('lost', { id: '4' }, { effects: { id: '4', set: { done: true } } }),
    client.send('kept', { id: '5' }, { effects: { id: '5', remove: true } }),
  ];
  found.several = [ids(all), ids(open), client.waiting];
  await Promise.all(done);
  found.accepted = client.waiting;
  // Nobody tells of it in this script, so after a while the page shows what the gateway says again.
  while (told.length < 4) await new Promise((resolve) => client.addEventListener('settled', resolve, { once: true }));
  found.settled = ids(all);
  found.told = told.map(([kind, stream]) => `${kind} ${stream}`);
  client.close();

  // What waits is kept for the next page, and taken over by it.
  localStorage.clear();
  const away = connect({ ...options, url: `${location.origin}/nowhere-${'x'}`, storage: localStorage, name: 'kept', mostWrites: 2 });
  away.outbox.busy = true; // as while the network is away
  away.send('kept', { id: 'k1' }, { effects: { id: 'k1', document: { at: new Date(0) } } }).catch(() => {});
  away.send('kept', { id: 'k2' }).catch(() => {});
  found.full = await away.send('kept', { id: 'k3' }).catch((error) => error.name);
  away.close();
  const next = connect({ ...options, storage: localStorage, name: 'kept' });
  while (!next.waiting) await new Promise((resolve) => next.addEventListener('writes', resolve, { once: true }));
  found.kept = next.outbox.writes[0].effects[0].document.at instanceof Date;
  while (next.waiting) await new Promise((resolve) => next.addEventListener('writes', resolve, { once: true }));
  found.left = localStorage.length;
  next.close();

  // A page that dies while it waits for the answer to a batch: the next one sends the very same.
  const dying = connect({ ...options, firstWaitMs: 1e6, longestWaitMs: 1e6, storage: localStorage, name: 'dying' });
  dying.outbox.busy = true;
  for (const id of ['d1', 'd2', 'd3']) dying.send('lost', { id, at: new Date(0) }).catch(() => {});
  dying.outbox.busy = false;
  dying.hurry();
  while (!dying.outbox.failures) await new Promise((resolve) => setTimeout(resolve, 5));
  dying.close();
  const heir = connect({ ...options, storage: localStorage, name: 'dying' });
  found.heir = 0;
  heir.addEventListener('refused', () => { found.heir += 1; });
  while (!heir.waiting) await new Promise((resolve) => heir.addEventListener('writes', resolve, { once: true }));
  while (heir.waiting) await new Promise((resolve) => heir.addEventListener('writes', resolve, { once: true }));
  heir.close();

  // A thousand writes of a page that was away: few requests, and what is refused is refused alone.
  const fates = async (stream, count, bad) => {
    const page = connect(options);
    page.outbox.busy = true;
    const sent = Array.from({ length: count }, (_, at) => page.send(stream, { id: `${stream}${at}`, ...(bad(at) && { bad: true }) })
      .then(({ offset }) => offset > 0, (error) => [error.write.record.id, error.problem.code]));
    page.outbox.busy = false;
    page.hurry();
    const all = await Promise.all(sent);
    page.close();
    return [all.filter((each) => each === true).length, all.filter((each) => each !== true)];
  };
  found.batches = await fates('lost', 1000, (at) => at % 300 === 7);
  found.narrow = await fates('narrow', 10, () => false);
  found.unreadable = await fates('unreadable', 5, (at) => at === 2);
  found.hopeless = await connect(options).send('kept', { id: 'x', at: new Date(NaN) }).catch((error) => error.name);

  // A thousand documents, a thousand changes.
  const copy = new Replica();
  copy.take({ type: 'begin', ordered: true });
  copy.take({ type: 'first', documents: Array.from({ length: 1000 }, (_, at) => ({ _id: at })) });
  copy.take({ type: 'ready', number: 0, token: 'a' });
  for (let at = 0; at < 1000; at += 1) copy.take({ type: 'changes', after: at, number: at + 1, token: 'b', events: [{ what: 'changeIndex', index: (at * 7) % 1000, document: { _id: at, seen: true } }] });
  found.thousand = [copy.documents.length, copy.documents.filter((each) => each.seen).length, new Set(copy.keys).size];

  // A page that was offline for long: a thousand moves among a thousand documents.
  const { overlaid } = await import('/client/overlay.js');
  const documents = Array.from({ length: 1000 }, (_, at) => ({ _id: `d${at}`, rank: at }));
  const effects = documents.map((_, at) => ({ id: `d${(at * 7) % 1000}`, set: { rank: ((at * 13) % 1000) + 0.5 } }));
  const moved = overlaid(documents, effects, { filter: {}, sort: [['rank', 1]] }, { ordered: true, lookup: () => undefined });
  found.moved = [new Set(moved.map((each) => each._id)).size, moved.every((each, at) => !at || moved[at - 1].rank <= each.rank), documents[0].rank];
  return found;
}
