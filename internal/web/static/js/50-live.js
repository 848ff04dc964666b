// Follows the org: a stream says what kind of records changed (see live.go), and 51-live-page.js
// requests the page again if it shows some of them. A hidden tab follows nothing, and catches up
// when it is shown again.
(() => {
  'use strict';
  const stream = document.body.dataset.liveStream;
  if (!stream || !window.EventSource) return;
  const grace = 5000, silence = 45000, slowest = 30000, steady = 5000; // ms
  let last = document.body.dataset.liveAfter;
  let source = null, failures = 0, lost = false, over = false;
  let refusedTask = ''; // it is not stored any more
  let retrying = 0, hiding = 0, watching = 0, proving = 0;

  const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));

  // One polite status region: at most one message in five seconds, and the last one counts.
  let words = '', speaking = 0, spoke = -5000;
  const say = text => {
    words = text;
    speaking ||= setTimeout(() => {
      speaking = 0;
      spoke = performance.now();
      const status = document.getElementById('status');
      if (status) status.textContent = words;
    }, Math.max(0, spoke + 5000 - performance.now()));
  };
  document.addEventListener('parley:say', event => say(event.detail));

  // A quiet note above the page, where nothing moves.
  const note = (text, link) => {
    const old = document.getElementById('live-note');
    if (!text) return old?.remove();
    const box = document.createElement('aside');
    box.id = 'live-note';
    box.setAttribute('aria-label', 'Connection');
    box.append(text);
    if (link) box.append(' ', link);
    if (old) old.replaceWith(box);
    else document.body.append(box);
    say(text);
  };
  const anchor = (href, text) => {
    const a = document.createElement('a');
    a.href = href;
    a.textContent = text;
    return a;
  };
  const signIn = () => {
    const next = new URLSearchParams({ next: location.pathname + location.search });
    const a = anchor('/login?' + next, 'Sign in in a new tab');
    a.target = '_blank'; // what was typed here stays
    a.rel = 'noopener';
    return a;
  };

  const close = () => {
    source?.close();
    source = null;
    document.body.dataset.liveState = 'closed';
    clearTimeout(retrying);
    clearTimeout(watching);
    clearTimeout(proving);
  };
  // A connection may be dead without an error. The server sends something every few seconds.
  const heard = () => {
    clearTimeout(watching);
    watching = setTimeout(fail, silence);
  };
  const open = () => {
    if (source || over || document.hidden) return;
    clearTimeout(retrying);
    const url = new URL(stream, location.href);
    url.searchParams.set('after', last);
    const task = document.querySelector('[data-live-task]')?.dataset.liveTask;
    if (task && task !== refusedTask) url.searchParams.set('task', task);
    source = new EventSource(url);
    heard();
    source.addEventListener('hello', hello);
    source.addEventListener('alive', works);
    source.addEventListener('change', event => {
      if (event.lastEventId) works(); // one without a number is the last one of its stream
      last = event.lastEventId || last;
      tell('parley:changed', JSON.parse(event.data));
    });
    source.addEventListener('task', event => {
      heard();
      tell('parley:changed', JSON.parse(event.data));
    });
    source.addEventListener('signed-out', signedOut);
    source.addEventListener('error', fail);
  };
  const hello = () => {
    heard();
    document.body.dataset.liveState = 'open';
    proving = setTimeout(works, steady);
    if (!lost) return;
    lost = false;
    note('');
    say('Connected again.');
    tell('parley:changed', { types: ['*'], subjects: ['*'] });
  };
  // A stream that says hello may still fail at once, each time.
  const works = () => {
    heard();
    failures = 0;
  };
  const signedOut = () => {
    close();
    over = lost = true;
    note('You are signed out.', signIn());
  };
  document.addEventListener('parley:signed-out', signedOut);
  document.addEventListener('parley:refused', event => note(event.detail, anchor(location.href, 'Reload')));
  document.addEventListener('parley:allowed', () => note(''));

  // Connect again: the first time at once, then later and later, and not all tabs together.
  const fail = async () => {
    const refused = source?.readyState === EventSource.CLOSED;
    close();
    if (document.hidden) return;
    const wait = failures ? Math.min(slowest, 500 * 2 ** failures) : 100;
    let text = failures++ ? 'Connection lost. Trying again…' : '', least = 0;
    if (refused) {
      const why = await reason();
      if (over || source) return; // signed out, or connected again meanwhile
      text = why.text || text;
      least = why.wait;
    }
    if (text) {
      lost = true;
      note(text);
    }
    clearTimeout(retrying);
    retrying = setTimeout(open, Math.max(wait, least) * (0.5 + Math.random()));
  };
  // An EventSource does not say why it was refused. Returns what to say, and how long to wait in ms.
  const reason = async () => {
    try {
      const response = await fetch(stream, { method: 'HEAD', credentials: 'same-origin' });
      if (response.status === 401 || response.status === 404) signedOut();
      if (response.ok) refusedTask = document.querySelector('[data-live-task]')?.dataset.liveTask;
      return {
        text: response.status === 429 ? 'Live updates are paused: too many windows are open.' : '',
        wait: 1000 * (Number(response.headers.get('Retry-After')) || 0),
      };
    } catch {
      return { text: '', wait: 0 };
    }
  };

  addEventListener('offline', () => {
    close();
    lost = true;
    failures = 1;
    if (!over) note('Connection lost. Trying again…');
    retrying = setTimeout(open, slowest);
  });
  addEventListener('online', open);
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiding);
    if (document.hidden) {
      hiding = setTimeout(close, grace);
      return;
    }
    over = false; // perhaps signed in again, in the other tab
    failures = 0;
    open();
  });
  addEventListener('pagehide', close);
  addEventListener('pageshow', open);
})();
