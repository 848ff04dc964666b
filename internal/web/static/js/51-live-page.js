// Live regions: <div id="…" data-live="TYPE TYPE…">. When records of these types change, the page
// is requested again, and every live region is updated from the response by its id.
//
// TYPE is a type of event, or a prefix of types such as proposal; * is any. data-live-subject
// limits a region to some records, and data-live-task="AGENT/ID" also follows one task. With
// data-live-again the page is requested once more a second later, for what events bring about.
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
  let running = false, wanted = false, refused = false, timer = 0;
  let held = []; // see parleyMorph
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
    wanted = false;
    held = [];
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
    if (!response.ok) return refuse(response.status);
    if (refused) allow();
    return new DOMParser().parseFromString(await response.text(), 'text/html');
  };
  // The page was deleted, or the role of the reader has changed.
  const refuse = status => {
    if (status !== 403 && status !== 404) return null;
    refused = true;
    document.querySelector('main')?.classList.add('gone');
    if (status === 403) regions().forEach(region => region.replaceChildren());
    tell('parley:refused', status === 403 ? 'You may no longer see this page.' : 'This page is gone.');
    return null;
  };
  const allow = () => {
    refused = false;
    document.querySelector('main')?.classList.remove('gone');
    tell('parley:allowed');
  };
  document.addEventListener('parley:changed', event => {
    const concerned = regions().filter(r => concerns(r, event.detail));
    if (!concerned.length) return;
    want();
    // The server keeps the presence of all agents for half a second.
    const early = event.detail.types?.includes('agent.presence');
    if (early || concerned.some(r => r.hasAttribute('data-live-again'))) setTimeout(want, 1000);
  });
  document.addEventListener('visibilitychange', () => { if (wanted) want(); });

  const update = page => {
    for (const region of regions()) {
      const fresh = page.getElementById(region.id);
      if (!fresh?.hasAttribute('data-live')) continue;
      if (region.hasAttribute('data-live-rows') && region.firstElementChild) updateRows(region, fresh);
      else morph(region, fresh);
    }
    tell('parley:updated');
  };
  const morph = (old, fresh) => {
    held.push(...window.parleyMorph(old, fresh));
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
  const release = () => { if (held.some(used => !used())) want(); };
  document.addEventListener('focusout', () => setTimeout(release));
  document.addEventListener('toggle', release, true);
  document.addEventListener('selectionchange', release);
})();
