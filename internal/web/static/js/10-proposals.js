// The list of proposals: the current row, the pane beside it, keyboard shortcuts, and selected rows.
// Without scripts, links, forms and checkboxes do the same, except for the shortcuts.
(() => {
  'use strict';
  const wide = matchMedia('(min-width: 1280px)');
  const list = () => document.getElementById('queue');
  const rows = () => [...(list()?.children ?? [])];
  const title = row => row.querySelector('.title');
  let at = null; // id of the current row

  // The URL names the current row, so that a reload and the back button restore it.
  const listURL = id => {
    const url = new URL(location.href);
    if (id) url.searchParams.set('at', id);
    else url.searchParams.delete('at');
    url.searchParams.delete('select');
    return url.pathname + url.search;
  };
  const mark = () => rows().forEach(r => {
    if (r.id === at) r.setAttribute('aria-current', 'true');
    else r.removeAttribute('aria-current');
  });
  const choose = row => {
    if (!row) return;
    if (row.id !== at) {
      at = row.id;
      history.replaceState(history.state, '', listURL(at));
    }
    mark();
    show(row);
  };

  // The pane shows the last requested proposal. Unfinished notes are kept until the reader returns.
  let asked = null, timer = 0;
  const drafts = new Map();
  const keep = pane => pane.querySelectorAll('textarea').forEach(t => {
    if (t.value !== t.defaultValue) drafts.set(t.id, t.value);
    else drafts.delete(t.id);
  });
  const restore = pane => pane.querySelectorAll('textarea').forEach(t => {
    if (drafts.has(t.id)) t.value = drafts.get(t.id);
  });
  const controls = pane => [...pane.querySelectorAll('a[href], button, input, select, textarea, summary')];
  const show = row => {
    const pane = document.getElementById('pane');
    if (!pane || !wide.matches) return;
    const shown = pane.firstElementChild?.dataset.id;
    clearTimeout(timer);
    if (shown !== row.id) timer = setTimeout(() => load(pane, row), shown ? 80 : 0);
  };
  const load = async (pane, row) => {
    const all = rows(), i = all.indexOf(row), ul = list();
    if (i < 0) return;
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    const next = all[i + 1] ?? all[i - 1];
    const more = document.querySelector('.pager [rel=next]');
    const back = !all[i + 1] && more ? more.getAttribute('href') : listURL(next?.id);
    const query = new URLSearchParams({ pos: Number(ul.dataset.first) + i, of: ul.dataset.total, back });
    try {
      tell('parley:wait', signal);
      const res = await fetch(title(row).getAttribute('href') + '/pane?' + query, {
        signal, headers: { 'HX-Request': 'true' }, credentials: 'same-origin',
      });
      if (res.status === 401) return say(pane, 'You are signed out. Sign in in another tab, then choose the row again.');
      if (!res.ok) return say(pane, 'This proposal cannot be shown now. Open it to see why.');
      const html = await res.text();
      keep(pane);
      // Keep the focus of a reader who is faster than the response: panes have the same controls.
      const focused = controls(pane).indexOf(document.activeElement);
      pane.innerHTML = html;
      restore(pane);
      if (focused >= 0) (controls(pane)[focused] ?? title(row)).focus();
      pane.scrollTop = 0;
      window.htmx?.process(pane);
    } catch (error) {
      if (error.name !== 'AbortError') say(pane, 'The server could not be reached. Choose the row again in a moment.');
    } finally {
      tell('parley:waited', signal);
    }
  };
  const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));
  const say = (pane, text) => {
    const p = document.createElement('p');
    p.className = 'quiet pane-in';
    p.textContent = text;
    pane.replaceChildren(p);
  };

  document.addEventListener('focusin', event => {
    const row = event.target.closest?.('#queue > li');
    if (row && row.id !== at) choose(row);
  });
  // A click on a row outside of its controls shows it in the pane. The title is a link to the page.
  document.addEventListener('click', event => {
    const row = event.target.closest?.('#queue > li');
    if (!row || event.target.closest('a, button, input, label')) return;
    if (String(getSelection())) return; // text was selected
    title(row).focus();
  });

  // A form of a row returns to the row.
  document.addEventListener('submit', event => {
    const form = event.target;
    if (form.matches?.('form.vote') && form.closest('#queue')) form.elements.back.value = listURL(form.closest('li').id);
  }, true);

  // Leave empty filters out of the URL.
  document.addEventListener('formdata', event => {
    if (event.target.id !== 'filters') return;
    for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
  });

  // Keyboard shortcuts.
  const off = () => { try { return localStorage.getItem('parley-keys') === 'off'; } catch { return false; } };
  const help = () => {
    const dialog = document.getElementById('keys');
    if (!dialog || dialog.open) return;
    document.getElementById('keys-on').checked = !off();
    dialog.showModal();
  };
  const move = step => {
    const all = rows(), i = all.findIndex(r => r.id === at);
    const focused = document.activeElement?.closest?.('#queue > li');
    const to = all[focused ? i + step : Math.max(i, 0)];
    if (to) title(to).focus();
  };
  const press = which => {
    const row = document.activeElement?.closest?.('#queue > li') ?? document.getElementById(at);
    const buttons = [...(row?.querySelectorAll('form.vote button') ?? [])];
    const button = which === 'u' ? buttons.find(b => b.ariaPressed === 'true')
      : buttons.find(b => b.id.startsWith(which + '-') && b.ariaPressed !== 'true');
    if (button?.getAttribute('aria-disabled') !== 'true') button?.click();
  };
  const keys = {
    j: () => move(1), k: () => move(-1), y: () => press('f'), n: () => press('a'), u: () => press('u'),
    '/': () => document.getElementById('q')?.focus(), '?': help,
  };
  document.addEventListener('keydown', event => {
    if (!list() && event.key !== '/') return;
    if (event.defaultPrevented || event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.('input:not([type=checkbox]), textarea, select, dialog, [contenteditable]')) return;
    if (!document.getElementById('filters') || off() && event.key !== '?') return;
    const run = keys[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  });
  document.addEventListener('click', event => {
    if (event.target.closest?.('#keys-open')) help();
  });
  document.addEventListener('change', event => {
    const box = event.target;
    if (box.id === 'keys-on') {
      try { localStorage.setItem('parley-keys', box.checked ? 'on' : 'off'); } catch { /* remembered for this page only */ }
    }
    if (box.name === 'pick') count();
  });

  // Selected rows.
  const boxes = () => [...document.querySelectorAll('#queue input[name=pick]')];
  const count = () => {
    const status = document.getElementById('chosen'), all = boxes();
    if (!status) return;
    const n = all.filter(b => b.checked).length;
    status.textContent = n ? n + ' selected' : '';
    const link = document.getElementById('select-page');
    if (link) link.textContent = n === all.length ? 'Select none' : 'Select all ' + all.length;
  };
  document.addEventListener('click', event => {
    const link = event.target.closest?.('#select-page');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const all = boxes(), on = !all.every(b => b.checked);
    all.forEach(b => { b.checked = on; });
    count();
  });

  // At the start, and after the page was updated in place.
  const start = first => {
    if (!list()) return;
    count();
    const wanted = document.querySelector('#queue > li[aria-current=true]') ?? document.getElementById(at);
    const row = wanted?.closest('#queue') ? wanted : rows()[0];
    if (!row) return;
    if (wanted && first && document.activeElement === document.body) title(row).focus({ preventScroll: false });
    if (wanted || wide.matches) {
      at = row.id;
      mark();
      show(row);
    }
  };
  document.addEventListener('htmx:after:swap', () => start(false));
  document.addEventListener('parley:updated', () => {
    mark();
    count();
  });
  wide.addEventListener('change', () => start(false));
  start(true);
})();
