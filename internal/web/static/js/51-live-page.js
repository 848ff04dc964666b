// Live regions: <div id="…" data-live="TYPE TYPE…">. When records of these types change, the page
// is requested again, and every live region is updated from the response by its id.
//
// TYPE is a type of event, or a prefix of types such as proposal; * is any. data-live-subject
// limits a region to some records, and data-live-task="AGENT/ID" also follows one task.
//
// With data-live-rows, elements with data-key are rows that must not move while somebody reads
// them: known rows are updated in place, and a button says how many are new.
(() => {
  'use strict';
  if (!document.body.dataset.liveStream) return;
  const regions = () => [...document.querySelectorAll('[data-live][id]')];
  const rows = region => [...region.querySelectorAll('[data-key]')];
  const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));
  const words = text => (text ?? '').split(' ').filter(Boolean);

  const concerns = (region, { types = [], subjects = [], task }) => {
    if (task) return region.dataset.liveTask === task;
    const kinds = words(region.dataset.live), about = words(region.dataset.liveSubject);
    return (types.includes('*') || kinds.includes('*')
        || types.some(t => kinds.some(k => t === k || t.startsWith(k + '.'))))
      && (!about.length || subjects.includes('*') || about.some(s => subjects.includes(s)));
  };

  // One request at a time: a few at once, and one a second in a longer burst.
  const burst = 4;
  let credit = burst, counted = performance.now();
  let running = false, wanted = false, held = false, timer = 0;
  const want = () => {
    wanted = true;
    clearTimeout(timer);
    if (running || document.hidden) return;
    const now = performance.now();
    credit = Math.min(burst, credit + (now - counted) / 1000);
    counted = now;
    if (credit < 1) timer = setTimeout(want, (1 - credit) * 1000);
    else refresh();
  };
  const refresh = async () => {
    running = true;
    wanted = held = false;
    credit--;
    try {
      const page = await load();
      if (page) update(page);
    } catch {
      setTimeout(want, 5000); // the server is busy or cannot be reached
    } finally {
      running = false;
      if (wanted) want();
    }
  };
  const load = async () => {
    const response = await fetch(location.href, {
      headers: { 'Parley-Live': '1' }, credentials: 'same-origin', signal: AbortSignal.timeout(20000),
    });
    if (response.status === 401) tell('parley:signed-out');
    if (response.status === 429 || response.status >= 500) throw new Error(response.statusText);
    if (!response.ok) return null; // what the page shows is gone
    return new DOMParser().parseFromString(await response.text(), 'text/html');
  };
  document.addEventListener('parley:changed', event => {
    if (!regions().some(r => concerns(r, event.detail))) return;
    want();
    // The server keeps the presence of all agents for half a second.
    if (event.detail.types?.includes('agent.presence')) setTimeout(want, 1000);
  });
  document.addEventListener('visibilitychange', () => { if (wanted) want(); });

  const update = page => {
    for (const region of regions()) {
      const fresh = page.getElementById(region.id);
      if (!fresh?.hasAttribute('data-live')) continue;
      if (region.hasAttribute('data-live-rows')) updateRows(region, fresh);
      else morph(region, fresh);
    }
    tell('parley:updated');
  };
  const morph = (old, fresh) => {
    if (!window.parleyMorph(old, fresh)) held = true;
    window.htmx?.process(old);
  };

  const updateRows = (region, fresh) => {
    const shown = rows(region), known = new Map(shown.map(row => [row.dataset.key, row]));
    const added = [];
    for (const row of rows(fresh)) {
      const mine = known.get(row.dataset.key);
      known.delete(row.dataset.key);
      if (!mine) added.push(row.dataset.key);
      else if (!mine.isEqualNode(row)) morph(mine, row);
    }
    // New rows push the last ones to the next page; these are not gone.
    const pushed = added.length ? shown.findLastIndex(row => !known.has(row.dataset.key)) + 1 : shown.length;
    shown.slice(0, pushed).forEach(row => row.classList.toggle('gone', known.has(row.dataset.key)));
    offer(region, added);
  };
  // Offers the new rows in a button that takes no space.
  const offer = (region, added) => {
    const old = region.querySelector(':scope > .live-new');
    if (!added.length) return old?.remove();
    const text = added.length + ' new';
    if (old?.textContent === text) return;
    const box = document.createElement('p'), link = document.createElement('a');
    box.className = 'live-new';
    link.className = 'btn small primary';
    link.href = location.href;
    link.textContent = text;
    link.dataset.added = JSON.stringify(added);
    if (old) {
      old.firstElementChild.replaceChildren(text); // it may have the focus
      old.firstElementChild.dataset.added = link.dataset.added;
    } else {
      box.append(link);
      region.prepend(box);
    }
    tell('parley:say', text + ' in this list.');
  };
  document.addEventListener('click', async event => {
    const link = event.target.closest?.('.live-new > a');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const region = link.closest('[data-live-rows]'), added = JSON.parse(link.dataset.added);
    const page = await load().catch(() => null);
    const fresh = page?.getElementById(region.id);
    if (!fresh) return location.assign(link.href);
    link.parentElement.remove();
    morph(region, fresh);
    update(page);
    rows(region).find(row => added.includes(row.dataset.key))?.querySelector('a, button')?.focus();
    tell('parley:say', added.length + ' added.');
  });

  // What was left alone is updated when the reader is done with it.
  const release = () => { if (held) want(); };
  document.addEventListener('focusout', () => setTimeout(release));
  document.addEventListener('toggle', release, true);
  document.addEventListener('selectionchange', () => { if (getSelection().isCollapsed) release(); });
})();
