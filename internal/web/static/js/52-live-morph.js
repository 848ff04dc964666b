// parleyMorph(old, fresh) changes an element into a fresh one from another document. Nodes that are
// in both keep their identity, and with it the focus and the scroll position. It leaves alone what
// somebody is using: a field with the focus or with input and the <details> around it, an open
// dialog, a form that is being sent, and selected text. Open <details> stay open. It returns a
// function for each node that it left alone, which reports whether the node is still used.
(() => {
  'use strict';
  const fields = 'input:not([type=hidden]), textarea, select';
  let left = [];

  const changed = e => {
    if (e.type === 'checkbox' || e.type === 'radio') return e.checked !== e.defaultChecked;
    if (e.tagName !== 'SELECT') return e.value !== e.defaultValue;
    return e.selectedIndex !== Math.max(0, [...e.options].findIndex(o => o.defaultSelected));
  };
  const writing = node => document.activeElement.matches(fields) && node.contains(document.activeElement)
    || [...node.querySelectorAll(fields)].some(changed);
  // For now: there will be an event when the reader is done.
  const used = node => node === document.activeElement && node.matches(fields)
    || node.matches('dialog[open]') || node.matches('details[open]') && writing(node)
    || node.tagName === 'FORM' && node.querySelector('[aria-disabled=true]');
  // Until the page is loaded again.
  const entered = node => node.matches('[hx-morph-skip]') || node.matches(fields) && changed(node)
    || node.tagName === 'FORM' && node.querySelector('[aria-invalid=true]');
  const selected = node => {
    const s = getSelection();
    return !s.isCollapsed && s.containsNode(node, true);
  };
  const kept = node => node.nodeType === 1 && (node.contains(document.activeElement) || used(node)
    || node.matches('details[open]') || node.querySelector('dialog[open], details[open]')
    || [...node.querySelectorAll(fields)].some(changed));

  const keyOf = node => node.nodeType === 1 ? node.id || node.dataset?.key || '' : '';
  const alike = (a, b) => a?.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

  const attributes = (old, fresh) => {
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value && name !== 'open') old.setAttribute(name, value);
    }
    if (old.tagName === 'INPUT' && old.type !== 'file') {
      old.value = fresh.value;
      old.checked = fresh.checked;
    }
  };
  const leave = (node, using) => left.push(() => node.isConnected && using(node));
  const remove = node => {
    if (kept(node)) leave(node, kept);
    else node.remove();
  };
  const children = (old, fresh) => {
    const keys = new Set([...fresh.children].map(keyOf));
    [...old.children].filter(c => keyOf(c) && !keys.has(keyOf(c))).forEach(remove);
    const known = new Map([...old.children].filter(keyOf).map(c => [keyOf(c), c]));
    let at = old.firstChild;
    for (const next of fresh.childNodes) {
      const key = keyOf(next), match = key ? known.get(key) : alike(at, next) ? at : null;
      if (match && match.nodeName !== next.nodeName && kept(match)) {
        leave(match, kept);
        continue;
      }
      if (match?.nodeName !== next.nodeName) {
        old.insertBefore(document.importNode(next, true), at);
        continue;
      }
      if (match === at) at = at.nextSibling;
      else old.insertBefore(match, at);
      morph(match, next);
    }
    while (at) {
      const rest = at;
      at = at.nextSibling;
      remove(rest);
    }
  };
  const morph = (old, fresh) => {
    if (old.nodeType !== 1) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.isEqualNode(fresh)) return;
    if (used(old)) {
      leave(old, used);
      return;
    }
    if (entered(old)) return;
    attributes(old, fresh);
    children(old, fresh);
    if (old.tagName === 'TEXTAREA') old.value = old.defaultValue;
  };

  window.parleyMorph = (old, fresh) => {
    left = [];
    if (selected(old)) {
      leave(old, selected);
      return left;
    }
    const focused = document.activeElement;
    if (old.nodeName === fresh.nodeName) morph(old, fresh);
    else if (kept(old)) leave(old, kept);
    else old.replaceWith(document.importNode(fresh, true));
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    return left;
  };
})();
