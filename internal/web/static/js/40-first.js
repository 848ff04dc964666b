// Elements with data-poll are requested again every two seconds: those that show what no event
// announces, see 50-live.js. Polling pauses while the tab is hidden, and stops when the user is
// signed out.
(() => {
  'use strict';
  const every = 2000;
  let stopped = false, held = false;
  const ask = () => {
    if (stopped || document.hidden) return;
    document.querySelectorAll('[data-poll]').forEach(part => part.dispatchEvent(new CustomEvent('poll')));
  };
  setInterval(ask, every);
  document.addEventListener('visibilitychange', ask);
  const status = event => event.detail?.ctx?.response?.raw?.status ?? event.detail?.ctx?.response?.status;
  document.addEventListener('htmx:before:swap', event => {
    if (event.detail.ctx?.sourceEvent?.type !== 'poll') return;
    held = event.detail.ctx.sourceElement.contains(document.activeElement);
    if (status(event) >= 400) event.preventDefault();
  });
  // If the focused element was removed, focus its replacement.
  document.addEventListener('htmx:after:swap', event => {
    const part = event.detail.ctx?.sourceElement;
    if (event.detail.ctx?.sourceEvent?.type !== 'poll' || !held || document.activeElement !== document.body) return;
    (part.querySelector('a, button') ?? part).focus();
  });
  document.addEventListener('htmx:response:error', event => {
    if (status(event) === 401 || status(event) === 404) stopped = true;
  });
})();
