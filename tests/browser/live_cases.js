// Runs in the page of tests/browser/test_live_client.py: the cases of all clients, in JavaScript.
async (cases, base, ways) => {
  const { connect } = await import('/client/live.js');
  const { write } = await import('/client/values.js');
  const found = [];
  const follow = async (each, number) => {
    const client = connect({ url: location.origin + base, ways: [ways], firstWaitMs: 1, longestWaitMs: 2 });
    const query = client.live({}, { live: `${ways}:${number}` });
    const kinds = [];
    try {
      for await (const change of query) {
        kinds.push(change.kind);
        if (kinds.length === each.kinds.length && !each.fails) break;
      }
    } catch (error) {
      client.close();
      return { kinds, fails: error.problem?.code ?? String(error) };
    }
    const documents = query.documents;
    client.close();
    return { kinds, documents: write(documents) };
  };
  // One after the other: a browser has six connections to a host.
  for (const [number, each] of cases.entries()) found.push(await follow(each, number));
  return found;
}
