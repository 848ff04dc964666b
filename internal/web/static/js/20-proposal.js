// The forms of a proposal: likely duplicates while typing, and saved notes.
(() => {
  'use strict';
  // <form data-similar="URL"> requests likely duplicates of its title and problem when the user
  // stops typing, and puts the response into #similar.
  const pause = 500, most = 1000;
  let timer, asked = '', running;
  const look = async form => {
    const box = form.querySelector('#similar');
    const title = form.elements.title.value.trim();
    if (!box || title.length < 4) return;
    const url = new URL(form.dataset.similar, location.href);
    url.searchParams.set('title', title.slice(0, 200));
    url.searchParams.set('problem', form.elements.problem.value.slice(0, most));
    if (url.href === asked) return;
    asked = url.href;
    running?.abort();
    running = new AbortController();
    try {
      const response = await fetch(url, { headers: { 'HX-Request': 'true' }, signal: running.signal });
      if (response.ok) box.innerHTML = await response.text(); // our own page: everything in it is escaped
    } catch {
      // Offline, or replaced by a later request: the form works without it.
    }
  };
  document.addEventListener('input', event => {
    const form = event.target.form;
    if (!form?.dataset.similar || !['title', 'problem'].includes(event.target.name)) return;
    clearTimeout(timer);
    timer = setTimeout(() => look(form), pause);
  });

  // <select data-fills="#id"> copies the text of the option into a field, unless the user has
  // entered something there.
  document.addEventListener('change', event => {
    const select = event.target.closest?.('select[data-fills]');
    const field = select && document.querySelector(select.dataset.fills);
    if (!field || field.value.trim() && field.value !== field.dataset.filled) return;
    field.value = field.dataset.filled = select.selectedOptions[0]?.dataset.text ?? '';
  });
})();
