// What every chart shares: colours from the page's tokens, drawing anew when the theme or the room changes, and paper.
// A chart is a [data-chart] with a still picture, an empty .canvas and a .readout. The script of a page says how it is
// drawn: Charts.draw(root, (canvas, colour, size) => a uPlot).
(function () {
  "use strict";

  // A token is a light-dark() pair; only where it is a colour of something does the browser say which one counts.
  function colours() {
    const probe = document.createElement("span");
    probe.hidden = true;
    document.body.append(probe);
    const found = new Map();
    const look = (name) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    const colour = (name) => {
      if (!found.has(name)) found.set(name, look(name));
      return found.get(name);
    };
    colour.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    colour.done = () => probe.remove();
    return colour;
  }

  const drawn = [];

  function renew(one) {
    one.plot?.destroy();
    one.colour?.done();
    one.colour = colours();
    const width = Math.floor(one.canvas.clientWidth);
    one.plot = one.make(one.canvas, one.colour, width);
    one.width = width;
    one.root.dataset.drawn = String(Number(one.root.dataset.drawn || 0) + 1);
  }

  function draw(root, make) {
    const one = { root, make, canvas: root.querySelector(".canvas") };
    root.classList.add("is-live");
    drawn.push(one);
    renew(one);
    new ResizeObserver(() => {
      const width = Math.floor(one.canvas.clientWidth);
      if (width && width !== one.width) renew(one);
    }).observe(one.canvas);
    return () => renew(one);
  }

  const renewAll = () => drawn.forEach(renew);
  new MutationObserver(renewAll).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    matchMedia(query).addEventListener("change", renewAll);
  }

  // On paper the numbers stand open.
  const closed = [];
  addEventListener("beforeprint", () => {
    closed.push(...document.querySelectorAll("details.numbers:not([open])"));
    closed.forEach((details) => (details.open = true));
  });
  addEventListener("afterprint", () => closed.splice(0).forEach((details) => (details.open = false)));

  // Of so many words on an axis so many fit.
  function thin(ticks, width, room) {
    const every = Math.max(1, Math.ceil((ticks.length * room) / Math.max(1, width)));
    return ticks.filter((_, number) => number % every === 0);
  }

  function clock(zone) {
    const parts = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false };
    let form;
    try {
      form = new Intl.DateTimeFormat("en-GB", { ...parts, timeZone: zone });
    } catch {
      form = new Intl.DateTimeFormat("en-GB", { ...parts, timeZone: "UTC" }); // a browser may know fewer zones
    }
    return (seconds) => form.format(new Date(seconds * 1000));
  }

  function data(id) {
    return JSON.parse(document.getElementById(id).textContent);
  }

  window.Charts = { draw, thin, clock, data };
})();
