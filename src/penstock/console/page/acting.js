// What the page does where it may write. The key comes with the link that the run prints, in the
// part of an address that no browser sends; it is taken out of the address at once.

const NAME = 'penstock.key';

export function takeKey() {
  const found = /^#key=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(NAME, found[1]);
  history.replaceState(null, '', '#/');
}

export const hasKey = () => Boolean(sessionStorage.getItem(NAME));

// Do something; what is wrong with it is thrown as a problem.
export async function act(path, body) {
  const answer = await fetch(`/v1/console/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${sessionStorage.getItem(NAME) ?? ''}` },
    body: JSON.stringify(body),
  });
  const found = await answer.json();
  if (answer.ok) return found;
  if (answer.status === 401) sessionStorage.removeItem(NAME);
  throw found;
}

export const words = (problem) => (problem.detail ? `${problem.detail}${problem.allowed ? ` · ${problem.allowed}` : ''}` : 'No answer: the run may be away.');
