// Shows a notice if a request takes longer than 400 ms: above the page, where nothing moves, and
// politely for screen readers. Faster requests show nothing.
(() => {
  'use strict';
  const patience = 400, words = 'Still working…';
  const timers = new Map(), late = new Set();
  const draw = () => {
    document.body.classList.toggle('slow', late.size > 0);
    const status = document.getElementById('status');
    if (!status) return;
    if (late.size) status.textContent = words;
    else if (status.textContent === words) status.textContent = '';
  };
  const start = key => {
    end(key);
    timers.set(key, setTimeout(() => { late.add(key); draw(); }, patience));
  };
  const end = key => {
    clearTimeout(timers.get(key));
    timers.delete(key);
    if (late.delete(key)) draw();
  };

  // Polls are silent; see 40-first.js.
  const polls = ctx => ctx?.sourceEvent?.type === 'poll';
  document.addEventListener('htmx:before:request', event => {
    if (!polls(event.detail.ctx)) start(event.detail.ctx);
  });
  document.addEventListener('htmx:finally:request', event => end(event.detail.ctx));
  // Other scripts identify their request: the detail of the event is any object.
  document.addEventListener('parley:wait', event => start(event.detail));
  document.addEventListener('parley:waited', event => end(event.detail));
  // A plain form waits until its page is replaced. The browser shows the progress of links itself.
  document.addEventListener('submit', event => {
    const form = event.target;
    if (event.defaultPrevented || form.hasAttribute('hx-post')) return;
    if (form.target === '_blank' || form.method === 'dialog') return;
    start(form);
  });
  addEventListener('pageshow', () => [...timers.keys()].forEach(end));
})();
