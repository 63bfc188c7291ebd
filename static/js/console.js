// Keeps a live page up to date: polls with the token of the picture it shows, counts its times on, and says so when a
// poll fails. The server decides what changed; here nothing is decided.
(function () {
  "use strict";

  const LOOKED_AT = 3000;
  const IDLE = 15000; // nobody touched the page for IDLE_AFTER
  const IDLE_AFTER = 120000;
  const HIDDEN = 60000; // the title still counts, for as long as somebody may glance at it
  const STOPPED_AFTER = 600000; // hidden for so long: no polls at all until it is looked at again
  const FIRST_RETRY = 6000;
  const LAST_RETRY = 60000;

  let timer = 0;
  let nextAt = 0;
  let failures = 0;
  let signedOut = false;
  let touchedAt = Date.now();
  let hiddenAt = 0;
  let skew = 0; // server's clock minus this one, in milliseconds
  let freshAt = 0;
  const NOT_CURRENT = "⚠ Not current · ";

  const byId = (id) => document.getElementById(id);
  const all = (selector, root) => (root || document).querySelectorAll(selector);

  // ── time in words: the same words as omniroute_admin/common/core/words.py ──
  const two = (number) => String(number).padStart(2, "0");

  function span(milliseconds) {
    const left = Math.max(0, Math.floor(milliseconds / 1000));
    if (left < 60) return `${left} s`;
    if (left < 600) return `${Math.floor(left / 60)} min ${two(left % 60)} s`;
    if (left < 3600) return `${Math.floor(left / 60)} min`;
    if (left < 86400) return `${Math.floor(left / 3600)} h ${two(Math.floor((left % 3600) / 60))} min`;
    return `${Math.floor(left / 86400)} d ${Math.floor((left % 86400) / 3600)} h`;
  }

  function words(element, now) {
    const at = Date.parse(element.dataset.at);
    if (element.dataset.tick === "ago") return `${span(now - at)} ago`;
    return at > now ? `in ${span(at - now)}` : "now";
  }

  function put(element, text) {
    if (element && element.textContent !== text) element.textContent = text;
  }

  function tick() {
    if (document.hidden) return;
    const now = Date.now();
    for (const element of all("[data-tick]")) put(element, words(element, now + skew));
    put(document.querySelector("[data-since]"), `${span(now - freshAt)} ago`);
    put(document.querySelector("[data-retry]"), span(nextAt - now + 999));
  }

  function readState() {
    const state = byId("live-state");
    skew = Date.parse(state.dataset.now) - Date.now();
    return state;
  }

  function markFresh() {
    freshAt = Date.now();
    const zone = byId("live-state").dataset.zone;
    const at = new Date(freshAt + skew);
    const clock = at.toLocaleTimeString("en-GB", { timeZone: zone, hour12: false });
    for (const element of all("[data-fresh]")) {
      element.dateTime = at.toISOString();
      put(element, clock);
    }
  }

  // ── polling ──
  function schedule(delay) {
    clearTimeout(timer);
    nextAt = Date.now() + delay;
    timer = setTimeout(poll, delay);
  }

  function pace() {
    if (failures) return Math.min(LAST_RETRY, FIRST_RETRY * 2 ** (failures - 1));
    if (document.hidden) return HIDDEN;
    return Date.now() - touchedAt < IDLE_AFTER ? LOOKED_AT : IDLE;
  }

  const isStopped = () => document.hidden && Date.now() - hiddenAt >= STOPPED_AFTER;

  function poll() {
    clearTimeout(timer);
    if (!signedOut && !isStopped()) htmx.trigger("#poller", "poll");
  }

  // Who asked: the poller, or a form whose answer is another picture; null for anything else.
  function askerOf(event) {
    const asked = event.detail.requestConfig;
    const asker = asked && asked.elt;
    return asker && asker.matches("#poller, form[data-asks]") ? asker : null;
  }

  function succeeded() {
    failures = 0;
    signedOut = false;
    markFresh();
    showBanner("");
    schedule(pace());
  }

  function failed(status, isChoice) {
    signedOut = status === 401 || status === 403;
    failures += 1;
    showBanner(signedOut ? "signed-out" : "failed", isChoice);
    if (!signedOut) schedule(pace());
    tick();
  }

  function showBanner(which, isChoice) {
    const banner = byId("poll-failed");
    banner.hidden = !which;
    byId("fresh").classList.toggle("past", Boolean(which));
    for (const part of all("[data-when]", banner)) part.hidden = part.dataset.when !== which;
    const undone = banner.querySelector("[data-undone]");
    if (isChoice || !which) undone.hidden = !isChoice;
    const link = banner.querySelector("[data-sign-in]");
    link.search = `?next=${encodeURIComponent(location.pathname + location.search)}`;
    markTitle(Boolean(which));
  }

  function markTitle(isPast) {
    const title = document.title.replace(NOT_CURRENT, "");
    document.title = isPast ? NOT_CURRENT + title : title;
  }

  // ── what htmx tells ──
  document.addEventListener("htmx:configRequest", (event) => {
    if (event.target.id !== "poller") return;
    const { query, token } = byId("live-state").dataset;
    event.detail.query = query;
    event.detail.path += `?${query}`;
    event.detail.parameters.v = token;
  });

  // An answer to a poll of a picture that a choice has replaced meanwhile would put another pool's list under its name.
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const asked = event.detail.requestConfig;
    if (asked.elt.id !== "poller" || asked.query === byId("live-state").dataset.query) return;
    event.preventDefault();
    event.detail.isOutrun = true;
  });

  // An answer without a live part is no picture, whoever between here and the server gave it.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const asker = askerOf(event);
    if (!asker || !event.detail.shouldSwap || event.detail.serverResponse.includes('id="live')) return;
    event.detail.shouldSwap = false;
    event.detail.isError = true;
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    const asker = askerOf(event);
    if (!asker) return;
    if (event.detail.isOutrun) schedule(pace());
    else if (event.detail.successful) succeeded();
    else {
      // The page is still the picture it was: no control may name another.
      if (asker.id !== "poller") asker.reset();
      failed(event.detail.xhr.status, asker.id !== "poller");
    }
  });

  // A region that scrolls sideways keeps its place when it is put anew.
  const kept = new Map();
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    for (const box of all("[id]", event.detail.target)) if (box.scrollLeft) kept.set(box.id, box.scrollLeft);
  });
  document.addEventListener("htmx:oobAfterSwap", () => {
    for (const [id, left] of kept) if (byId(id)) byId(id).scrollLeft = left;
    kept.clear();
  });

  // A swap of the live part brings a new picture too.
  document.addEventListener("htmx:afterSettle", () => {
    readState();
    tick();
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-refresh], [data-try]");
    if (!button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    poll();
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hiddenAt = Date.now();
    touched();
    if (document.hidden) schedule(pace());
    else poll();
  });

  // The network is back: nothing is gained by waiting for the next try.
  window.addEventListener("online", () => {
    if (failures && !document.hidden) poll();
  });

  // A page that was left alone polls at once when somebody comes back to it.
  function touched() {
    const wasIdle = Date.now() - touchedAt >= IDLE_AFTER;
    touchedAt = Date.now();
    if (wasIdle && !document.hidden && !failures) poll();
  }

  for (const name of ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"])
    document.addEventListener(name, touched, { passive: true });

  document.addEventListener("DOMContentLoaded", () => {
    readState();
    markFresh();
    for (const element of all("[data-pace]")) element.hidden = false;
    schedule(pace());
    setInterval(tick, 1000);
  });
})();
