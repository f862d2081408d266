// The list of what is wrong with the page: names, contrast (1.4.3), headings (1.3.1), width (1.4.10).
(() => {
  const wrong = [];
  const visible = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const where = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + " " + (e.textContent || "").trim().slice(0, 40);

  for (const e of document.querySelectorAll("button, a[href], input, select, summary, [role=img], [role=region], table")) {
    const label = e.labels?.[0]?.textContent || document.getElementById(e.getAttribute("aria-labelledby"))?.textContent;
    const name = e.getAttribute("aria-label") || label || e.caption?.textContent || (e.matches("input, select") ? "" : e.textContent);
    if (visible(e) && !name.trim()) wrong.push("no name: " + where(e));
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of ids.filter((id, i) => ids.indexOf(id) !== i)) wrong.push("two elements have the id " + id);
  for (const e of document.querySelectorAll("[aria-describedby], [aria-labelledby]")) {
    for (const id of (e.getAttribute("aria-describedby") || e.getAttribute("aria-labelledby")).split(" ")) {
      if (!ids.includes(id)) wrong.push("no element has the id " + id);
    }
  }
  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
    const next = Number(h.tagName[1]);
    if (next > level + 1) wrong.push("a heading is left out before: " + where(h));
    level = next;
  }
  if (!document.documentElement.lang) wrong.push("no language");
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("wider than the window: " + document.documentElement.scrollWidth);

  const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    const box = e.closest(".node")?.querySelector("rect");
    if (box) return getComputedStyle(box).fill;
    for (let at = e; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((parse(colour)[3] ?? 1) > 0) return colour;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || !visible(e) || e.closest("script, title")) continue;
    const style = getComputedStyle(e);
    const [front, back] = [e.closest("svg") ? style.fill : style.color, behind(e)].map(parse).map(luminance);
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) wrong.push(`contrast ${ratio.toFixed(2)}: ${where(e)}`);
  }
  return [...new Set(wrong)];
})()
