// @ts-check
// Adds live updates, local times, keys and the theme to the pages. Every page works without it.
//
// An update loads the page again and replaces the parts that are marked `data-live`. The browser parses the
// response (`responseType = "document"`), so no text of this script ever becomes markup: there is no sink for
// Trusted Types, and the policy of the pages may forbid every Trusted Types policy.
"use strict";

(() => {
  const { body, documentElement: root } = document;
  const base = body.dataset.base ?? "./";
  /** Difference between the clock of this browser and the clock of the server. */
  const rendered = Number(body.dataset.now ?? Date.now());
  const skew = Date.now() - rendered;
  /** Time from a change until every read of the store has it, with the difference of two servers' clocks. */
  const MAX_DELAY = 5000;
  const UPDATE_INTERVAL = 1000;
  const POLL_INTERVAL = 5000;

  /**
   * @param {string} selector
   * @param {ParentNode} [within]
   * @returns {HTMLElement[]}
   */
  const all = (selector, within = document) => [...within.querySelectorAll(selector)].map((it) => /** @type {HTMLElement} */ (it));
  /** @param {string} id */
  const byId = (id) => document.getElementById(id);

  // Times

  /** @param {number} ms */
  const span = (ms) => {
    const seconds = Math.floor(ms / 1000);
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
  };

  /**
   * @param {number} at
   * @param {string | undefined} kind
   */
  const timeText = (at, kind) => {
    const passed = Date.now() - skew - at;
    if (kind === "ago") return passed < 1000 ? "now" : `${span(passed)} ago`;
    if (kind === "age") return span(Math.max(passed, 0));
    if (kind === "left") return passed >= 0 ? "over" : `${span(-passed)} left`;
    const date = new Date(at);
    /** @type {Intl.DateTimeFormatOptions} */
    const clock = { hour: "2-digit", minute: "2-digit", second: kind === "second" ? "2-digit" : undefined };
    const isToday = date.toDateString() === new Date().toDateString();
    return isToday || kind === "second" ? date.toLocaleTimeString("en-GB", clock) : date.toLocaleString("en-GB", { day: "numeric", month: "short", ...clock });
  };

  /** @param {ParentNode} [within] */
  const showTimes = (within) => {
    for (const it of all("time[data-t]", within)) {
      const at = Date.parse(it.getAttribute("datetime") ?? "");
      if (Number.isNaN(at)) continue;
      const text = timeText(at, it.dataset.t);
      if (it.textContent !== text) it.textContent = text;
      if (!it.dataset.exact) {
        it.dataset.exact = "yes";
        it.title = new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "long" });
      }
    }
  };

  // Updates

  /**
   * @param {string} address
   * @returns {Promise<Document | null>}
   */
  const load = (address) =>
    new Promise((done) => {
      const request = new XMLHttpRequest();
      request.open("GET", address);
      request.responseType = "document";
      request.timeout = 15000;
      request.onloadend = () => done(request.status === 200 ? request.responseXML : null);
      request.send();
    });

  /** @param {Element} it */
  const nameOf = (it) => it.id || it.getAttribute("href") || it.getAttribute("value") || "";

  /**
   * Replaces a part. Focus, selection, open folds and the end of a scrolled text stay.
   * @param {HTMLElement} old
   * @param {HTMLElement} next
   */
  const replacePart = (old, next) => {
    const active = document.activeElement;
    const focused = active && old.contains(active) ? nameOf(active) : "";
    const picked = new Set(all("input:checked", old).map(nameOf));
    const open = new Set(all("details[open]", old).map(nameOf));
    const tail = all("[data-tail]", old)[0];
    const isAtEnd = !tail || tail.scrollHeight - tail.scrollTop - tail.clientHeight < 16;
    const top = tail?.scrollTop ?? 0;
    showTimes(next);
    old.replaceWith(document.adoptNode(next));
    for (const it of all("input[type=checkbox]", next)) {
      if (picked.has(nameOf(it))) /** @type {HTMLInputElement} */ (it).checked = true;
    }
    for (const it of all("details[id]", next)) if (open.has(it.id)) it.setAttribute("open", "");
    for (const it of all("[data-tail]", next)) it.scrollTop = isAtEnd ? it.scrollHeight : top;
    for (const it of all("a[data-more]", next)) growing.observe(it);
    if (focused) all("a, button, input, summary", next).find((it) => nameOf(it) === focused)?.focus({ preventScroll: true });
  };

  /** @param {HTMLElement} part */
  const isEdited = (part) =>
    part.dataset.grown !== undefined || all("input:not([type=checkbox], [type=hidden]), textarea, select", part).includes(/** @type {HTMLElement} */ (document.activeElement));

  let isLoading = false;
  let isStale = false;

  const update = async () => {
    isStale = true;
    if (isLoading) return;
    isLoading = true;
    while (isStale && isLive()) {
      isStale = false;
      const parts = all("[data-live]");
      for (const part of parts) part.setAttribute("aria-busy", "true");
      const next = await load(location.href);
      for (const part of parts) part.removeAttribute("aria-busy");
      if (next && next.body.dataset.page === body.dataset.page) {
        document.title = next.title;
        for (const part of all("[data-live]")) {
          const fresh = next.getElementById(part.id);
          if (fresh && !isEdited(part)) replacePart(part, fresh);
        }
        showSelection();
        report(isConnected ? "" : LOST);
      } else {
        report(next ? "This page has changed or your session has ended. Reload the page." : LOST);
      }
      await new Promise((done) => setTimeout(done, UPDATE_INTERVAL));
    }
    isLoading = false;
  };

  // The stream: hints that a part has changed

  const LOST = "The connection is interrupted. This page is updated every 5 seconds.";
  const status = document.createElement("p");
  status.className = "notice";
  status.setAttribute("role", "status");
  status.hidden = true;

  /** @param {string} text */
  const report = (text) => {
    if (status.textContent !== text) status.textContent = text;
    status.hidden = text === "";
  };

  /** @type {EventSource | null} */
  let stream = null;
  let isConnected = true;
  let isPaused = sessionStorage.getItem("paused") === "yes";
  const isLive = () => !isPaused && !document.hidden;

  /** @param {number} count */
  const showCount = (count) => {
    const badge = byId("inbox-count");
    if (!badge || badge.textContent === String(count)) return;
    badge.textContent = String(count);
    badge.hidden = count === 0;
    document.title = (count ? `(${count}) ` : "") + document.title.replace(/^\(\d+\) /, "");
    if (body.dataset.page === "inbox") update();
  };

  /**
   * A stream starts with hints of all its tasks. The page has most of these changes.
   * @param {MessageEvent<string>} event
   */
  const onHint = (event) => {
    const isOld = Date.parse(JSON.parse(event.data).updated_at) < rendered - MAX_DELAY;
    if (!isOld) update();
  };

  const connect = () => {
    stream?.close();
    stream = null;
    const address = body.dataset.stream;
    if (!address || !isLive()) return;
    stream = new EventSource(address);
    stream.onopen = () => {
      if (!isConnected) update();
      isConnected = true;
      report("");
    };
    stream.onerror = () => {
      isConnected = false;
      report(LOST);
    };
    stream.addEventListener("inbox", (event) => showCount(Number(JSON.parse(event.data).count)));
    stream.addEventListener("task", onHint);
    stream.addEventListener("output", onHint);
  };

  const liveButton = document.createElement("button");
  liveButton.type = "button";
  liveButton.className = "live";
  const showLive = () => {
    liveButton.textContent = isPaused ? "Paused" : "Live";
    liveButton.setAttribute("aria-pressed", String(!isPaused));
    liveButton.title = isPaused ? "Updates are paused (p)" : "Updates are on (p)";
  };
  const togglePause = () => {
    isPaused = !isPaused;
    sessionStorage.setItem("paused", isPaused ? "yes" : "no");
    showLive();
    connect();
    if (!isPaused) update();
  };

  const startLive = () => {
    const link = byId("live");
    if (!link) return;
    link.replaceWith(liveButton);
    liveButton.addEventListener("click", togglePause);
    byId("main")?.prepend(status);
    showLive();
    connect();
    const every = Number(body.dataset.poll ?? 0) * 1000;
    let last = Date.now();
    setInterval(() => {
      showTimes();
      const isDue = every > 0 && Date.now() - last >= every;
      if (isLive() && body.dataset.stream && (isDue || !isConnected)) {
        last = Date.now();
        update();
      }
    }, POLL_INTERVAL);
    document.addEventListener("visibilitychange", () => {
      connect();
      if (isLive()) update();
    });
  };

  // Lists that grow: the link to the next page adds its rows to this page

  const growing = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) grow(/** @type {HTMLAnchorElement} */ (entry.target));
  }, { rootMargin: "800px" });

  /** @param {HTMLAnchorElement} link */
  const grow = async (link) => {
    growing.unobserve(link);
    const next = await load(link.href);
    const chunk = next?.getElementById("chunk");
    if (!next || !chunk) return;
    const more = next.querySelector("a[data-more]");
    chunk.removeAttribute("id");
    showTimes(chunk);
    const part = /** @type {HTMLElement | null} */ (link.closest("[data-live]"));
    if (part) part.dataset.grown = "";
    const place = link.closest("p") ?? link;
    place.before(document.adoptNode(chunk));
    if (!more) return place.remove();
    link.setAttribute("href", more.getAttribute("href") ?? "");
    growing.observe(link);
  };

  // Selection

  const showSelection = () => {
    const selected = all(".pick input:checked").length;
    for (const it of all("[data-selected]")) it.textContent = `${selected} selected`;
    for (const it of all("button[data-needs-selection]")) /** @type {HTMLButtonElement} */ (it).disabled = selected === 0;
  };

  // Theme

  const THEMES = ["system", "light", "dark"];
  const switchTheme = () => {
    const theme = THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length];
    root.dataset.theme = theme;
    const path = new URL(base, location.href).pathname;
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `outlive-theme=${theme}; path=${path.replace(/\/$/, "")}; max-age=31536000; samesite=lax${secure}`;
    for (const it of all("[data-theme-name]")) it.textContent = theme;
  };

  // Keys. No key decides anything.

  /** @param {number} step */
  const move = (step) => {
    const links = all("[data-row] .name");
    const at = links.findIndex((it) => it.closest("[data-row]")?.contains(document.activeElement));
    links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1)]?.focus();
  };

  const pick = () => {
    const box = document.activeElement?.closest("[data-row]")?.querySelector(".pick input");
    if (box) /** @type {HTMLInputElement} */ (box).click();
  };

  const listKeys = async () => {
    const keys = (await load(`${base}settings`))?.getElementById("keys");
    if (!keys) return;
    const dialog = document.createElement("dialog");
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.append(document.adoptNode(keys), close);
    dialog.setAttribute("aria-labelledby", "keys-title");
    dialog.addEventListener("close", () => dialog.remove());
    body.append(dialog);
    dialog.showModal();
  };

  /** @type {Record<string, () => void>} */
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    x: pick,
    p: togglePause,
    "/": () => all("[data-find]")[0]?.focus(),
    "?": listKeys,
  };

  let prefixUntil = 0;

  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
    if (target.closest("textarea, select, input:not([type=checkbox])")) return;
    const section = Date.now() < prefixUntil ? all(`[data-key="${CSS.escape(event.key)}"]`)[0] : undefined;
    prefixUntil = event.key === "g" ? Date.now() + 1500 : 0;
    const action = section ? () => section.click() : Object.hasOwn(actions, event.key) ? actions[event.key] : undefined;
    if (!action) return;
    event.preventDefault();
    action();
  };

  showTimes();
  startLive();
  showSelection();
  for (const it of all("a[data-more]")) growing.observe(it);
  for (const it of all("[data-tail]")) it.scrollTop = it.scrollHeight;
  if (body.dataset.keys !== "off") document.addEventListener("keydown", onKey);
  document.addEventListener("change", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    showSelection();
    if (target.matches(".filters select")) /** @type {HTMLSelectElement} */ (target).form?.requestSubmit();
  });
  document.addEventListener("click", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.closest("[data-theme-switch]")) {
      event.preventDefault();
      switchTheme();
    }
    for (const it of all(".menu[open]")) if (!it.contains(target)) it.removeAttribute("open");
  });
})();
