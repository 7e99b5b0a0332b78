// Run in the page before its own scripts (page_driver.py): what the tests measure there.
(() => {
  const violations = [];
  document.addEventListener('securitypolicyviolation', event => violations.push(`${event.violatedDirective} ${event.blockedURI}`));

  const byId = id => document.getElementById(id);
  const isSeen = element => element.checkVisibility({visibilityProperty: true}) && element.getBoundingClientRect().width > 0;
  const name = element => element.id || element.outerHTML.slice(0, 60);

  const colour = text => {
    const c = text.match(/[0-9.]+/g).map(Number);
    const unit = text.startsWith('color(') ? 255 : 1;
    return [c[0] * unit, c[1] * unit, c[2] * unit, c.length > 3 ? c[3] : 1];
  };
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const luminance = c => {
    const [r, g, b] = c.slice(0, 3).map(v => v / 255).map(v => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const c = colour(getComputedStyle(e).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };

  // Contrast of text as WCAG computes it: the colour over what is behind it; 4.5, or 3 for large text.
  function lowContrast() {
    const bad = [];
    for (const e of document.querySelectorAll('body *')) {
      if (!e.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
      if (e.closest('svg, dialog:not([open]), [disabled], option, .visually-hidden, canvas')) continue;
      if (![...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.textContent.trim())) continue;
      const style = getComputedStyle(e), behind = ground(e);
      const [dim, bright] = [luminance(over(colour(style.color), behind)), luminance(behind)].sort((a, b) => a - b);
      const ratio = (bright + 0.05) / (dim + 0.05), size = parseFloat(style.fontSize);
      const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
      if (ratio < (isLarge ? 3 : 4.5)) bad.push([e.textContent.trim().slice(0, 30), ratio.toFixed(2), style.color, behind.join(' ')]);
    }
    return bad;
  }

  // What does not fit into the window, and what leaves too little for the map.
  function outOfWindow() {
    const out = [...document.querySelectorAll('header *, main button, main select, aside button')].filter(isSeen).filter(e => {
      const r = e.getBoundingClientRect();
      return r.right > innerWidth + 1 || r.left < -1;
    }).map(name);
    const map = byId('view').getBoundingClientRect();
    if (map.width < innerWidth * 0.4 || map.height < innerHeight * 0.3) out.push(`a map of ${map.width} x ${map.height}`);
    if (document.documentElement.scrollWidth > innerWidth + 1) out.push(`a page of ${document.documentElement.scrollWidth}`);
    return out;
  }

  // Targets below 24 x 24 px, the least of WCAG 2.2.
  function smallTargets() {
    return [...document.querySelectorAll('button, select, input:not([type=checkbox], [type=radio], [type=range])')].filter(isSeen)
      .map(e => [name(e), e.getBoundingClientRect()]).filter(([, r]) => r.width < 23.5 || r.height < 23.5)
      .map(([id, r]) => `${id} ${r.width} x ${r.height}`);
  }

  // Where the focus is, whether it is seen there and marked.
  function focus() {
    const e = document.activeElement;
    if (!e || e === document.body) return null;
    const style = getComputedStyle(e);
    const ring = (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none';
    return {name: name(e), seen: isSeen(e), marked: e.matches(':focus-visible') && ring};
  }

  // What Tab has to reach.
  function stops() {
    return [...document.querySelectorAll('button, input, select, canvas[tabindex]')]
      .filter(e => !e.disabled && e.tabIndex >= 0 && isSeen(e) && !e.closest('dialog:not([open])')).map(name);
  }

  function brokenIds() {
    const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
    const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
    const wanted = ['aria-controls', 'aria-labelledby', 'aria-describedby', 'for'].flatMap(key =>
      [...document.querySelectorAll(`[${key}]`)].flatMap(e => e.getAttribute(key).split(' ')));
    return [...twice, ...wanted.filter(id => id && !byId(id))];
  }

  // The pixel of the window whose place in the map is nearest to (x, y), and how near that is.
  function pixelOf([x, y]) {
    const box = byId('view').getBoundingClientRect();
    const reach = ([u, v]) => {
      const p = window.ndt.view.pick(u, v);
      return p ? Math.hypot(p[0] - x, p[1] - y) : Infinity;
    };
    let best = [box.width / 2, box.height / 2];
    const consider = at => { if (reach(at) < reach(best)) best = at; };
    for (let u = 4; u < box.width; u += 12) for (let v = 4; v < box.height; v += 12) consider([u, v]);
    for (const step of [6, 3, 1]) {
      const [u, v] = best;
      for (let i = -2; i <= 2; i++) for (let j = -2; j <= 2; j++) consider([u + i * step, v + j * step]);
    }
    return {x: best[0] + box.left, y: best[1] + box.top, off: reach(best)};
  }

  window.pageChecks = {
    violations: () => violations.splice(0),
    brightness: () => luminance(colour(getComputedStyle(document.body).backgroundColor)),
    state: () => byId('state-badge').dataset.state,
    isCutOff: () => !byId('banner').hidden || byId('connection').dataset.state !== 'live',
    hasMap: () => !!window.ndt && window.ndt.stats().points > 1000,
    lowContrast, outOfWindow, smallTargets, focus, stops, brokenIds, pixelOf,
  };
})();
