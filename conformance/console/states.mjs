// States of the console: opens the pages and checks each of them.

import { leg, some } from "./rows.mjs";
import { Visit } from "./visit.mjs";

const BAR = "axe 4.14 wcag2a to wcag22aa: 0 findings, no CSP report";

/** Opens all states in each variant and prints a row for it. Returns the requests to other origins. */
export async function look(browser, settings, what, variants) {
  const foreign = [];
  for (const variant of variants) {
    await leg(`${what}, ${variant}`, BAR, async () => {
      const seen = await lookAt(browser, settings, variant);
      foreign.push(...seen.foreign);
      return { figure: `${seen.states} states, ${seen.defects.length} defects${some(seen.defects)}`, met: seen.defects.length === 0 };
    });
  }
  return foreign;
}

/**
 * Opens all states in one variant. A state has the path of its page, or also its HTML if the server is gone; texts to
 * type; a button to press; the status of its last page, and the values of its hidden fields.
 */
async function lookAt(browser, { origin, sessions, states, screenshots }, variant) {
  const visits = new Map(), defects = [];
  for (const { name, path, html, person, heading, press, type, status, fields } of states) {
    if (!visits.has(person)) visits.set(person, await Visit.open(browser, origin, sessions[person], variant));
    const visit = visits.get(person);
    try {
      visit.stored = html ? { path, html } : null;
      let response = await visit.goto(path);
      for (const [selector, text] of Object.entries(type ?? {})) await visit.page.type(selector, text);
      if (press) response = await visit.press(press);
      if (status && response.status() !== status) visit.fails(`${name}: the status is ${response.status()} instead of ${status}`);
      for (const [field, value] of Object.entries(fields ?? {})) {
        const found = await visit.page.$eval(`input[type=hidden][name="${field}"]`, (it) => it.value).catch(() => null);
        if (found !== value) visit.fails(`${name}: the field ${field} is ${JSON.stringify(found)} instead of ${JSON.stringify(value)}`);
      }
      await visit.check(name, { heading, screenshots });
    } catch (error) {
      visit.fails(`${name}: ${error.message}`);
    }
  }
  const foreign = [...visits.values()].flatMap((visit) => visit.foreign);
  for (const visit of visits.values()) {
    defects.push(...visit.defects);
    await visit.close();
  }
  return { states: states.length, defects, foreign };
}
