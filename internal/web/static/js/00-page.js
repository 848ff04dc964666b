// Enhancements for all pages. All of them are optional: the same forms and links work without
// scripts.
(() => {
  'use strict';
  const say = text => {
    const status = document.getElementById('status');
    if (status && text) status.textContent = text;
  };
  const notice = (text, link) => {
    const box = document.getElementById('notices');
    if (!box) return;
    const p = document.createElement('p');
    p.className = 'notice bad';
    p.id = 'problem';
    p.tabIndex = -1;
    p.setAttribute('role', 'alert');
    p.append(text);
    if (link) {
      const a = document.createElement('a');
      a.href = link.href;
      a.target = '_blank';
      a.rel = 'noopener';
      a.textContent = link.text;
      p.append(' ', a);
    }
    box.replaceChildren(p);
  };

  // Do not send a form again while it is in flight. Its button keeps the focus.
  const busy = new WeakSet();
  const settle = form => {
    busy.delete(form);
    form.querySelectorAll('[aria-disabled]').forEach(b => b.removeAttribute('aria-disabled'));
  };
  document.addEventListener('submit', event => {
    const form = event.target;
    if (busy.has(form)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    if (form.method !== 'post') return; // a search, or closing a dialog
    busy.add(form);
    (event.submitter || form.querySelector('button'))?.setAttribute('aria-disabled', 'true');
    if (form.target === '_blank') setTimeout(() => settle(form), 0);
  }, true);

  // Reports whether the request is a poll; see 40-first.js.
  const waits = event => event.detail.ctx?.sourceEvent?.type === 'poll';

  // htmx: handle responses.
  document.addEventListener('htmx:finally:request', event => {
    const form = event.target.closest?.('form');
    if (form) settle(form);
  });
  document.addEventListener('htmx:before:swap', event => {
    const ctx = event.detail.ctx;
    const status = ctx?.response?.raw?.status ?? ctx?.response?.status;
    if (status !== 401) return;
    event.preventDefault();
    notice('You are signed out. What you typed is still here: sign in, come back to this tab and send it again.',
      { href: '/login', text: 'Sign in in a new tab' });
  });
  document.addEventListener('htmx:response:error', event => {
    const status = event.detail.ctx?.response?.raw?.status ?? event.detail.ctx?.response?.status;
    if (status === 401) {
      notice('You are signed out. What you typed is still here: sign in, come back to this tab and send it again.',
        { href: '/login', text: 'Sign in in a new tab' });
    }
  });
  document.addEventListener('htmx:error', event => {
    if (event.detail.ctx?.response || waits(event) && document.getElementById('problem')) return;
    notice('The server could not be reached. What you typed is still here; try again in a moment.');
  });
  // Keep <details> as the reader left them, except those with errors.
  let folds = new Map();
  document.addEventListener('htmx:before:swap', () => {
    folds = new Map([...document.querySelectorAll('details[id]')].map(d => [d.id, d.open]));
  });
  document.addEventListener('htmx:after:swap', event => {
    folds.forEach((open, id) => {
      const fold = document.getElementById(id);
      if (fold && !fold.querySelector('[aria-invalid=true]')) fold.open = open;
    });
    if (waits(event)) return; // a poll must not move the focus
    const problem = document.getElementById('problem');
    if (problem) problem.focus();
    else say(document.querySelector('#notices .notice')?.textContent);
  });

  // A page from the history may be outdated: reload it, unless something was entered.
  const changed = e => {
    if (e.type === 'checkbox' || e.type === 'radio') return e.checked !== e.defaultChecked;
    if (e.tagName !== 'SELECT') return e.value !== e.defaultValue;
    const first = [...e.options].findIndex(o => o.defaultSelected);
    return e.selectedIndex !== Math.max(first, 0);
  };
  const typed = () => [...document.querySelectorAll('main textarea, main select, main input:not([type=hidden])')].some(changed);
  // If the page is not in memory, the browser shows the response in its cache without asking the server.
  const kept = () => {
    const [how] = performance.getEntriesByType('navigation');
    return how?.type === 'back_forward' && how.transferSize === 0;
  };
  // The response to a form with errors: to reload it would send the form again.
  const refused = () => document.querySelector('#problem, main [aria-invalid=true]') !== null;
  addEventListener('pageshow', event => {
    document.querySelectorAll('form').forEach(settle);
    if ((event.persisted || kept()) && !typed() && !refused()) location.reload();
  });

  // Copy buttons: <button data-copy="#id">.
  document.addEventListener('click', async event => {
    const button = event.target.closest?.('[data-copy]');
    if (!button) return;
    const source = document.querySelector(button.dataset.copy);
    if (!source) return;
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      say('Copied.');
      button.dataset.done = 'Copied';
    } catch {
      getSelection().selectAllChildren(source);
      say('Press Ctrl+C to copy.');
    }
  });
})();
