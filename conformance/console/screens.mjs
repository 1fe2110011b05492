// Every screen and state of the console in Chromium: node screens.mjs SETTINGS
//
// SETTINGS is JSON: `chromium` is the program, `origin` the server, `sessions` the session of each person, `tokens` and
// `deciding` their tokens, `states` the pages to open, `screenshots` a folder or null, `short` whether a few variants
// suffice. Prints one row of the report per line.

import { journal } from "./journal.mjs";
import { keyboard, noKeyDecides, focus } from "./keyboard.mjs";
import { badge, interrupted, live, motion, theme } from "./live.mjs";
import { linkWithoutClick, prefix, withoutScript } from "./plain.mjs";
import { leg, some } from "./rows.mjs";
import { look } from "./states.mjs";
import { FEW, launch, VARIANTS } from "./visit.mjs";

const settings = JSON.parse(process.argv[2]);
const browser = await launch(settings.chromium);

const variants = settings.short ? FEW : Object.keys(VARIANTS);
const foreign = await look(browser, settings, "every screen and state", variants);
await leg("requests to another origin", "0", async () => ({ figure: `${foreign.length}${some(foreign)}`, met: foreign.length === 0 }));

const legs = [keyboard, noKeyDecides, focus, withoutScript, prefix, linkWithoutClick, live, interrupted, badge, theme, motion, journal];
for (const { name, bar, run } of legs) {
  // Some bars differ in a short run, which uses an unoptimized build on a busy machine.
  await leg(name, typeof bar === "function" ? bar(settings) : bar, () => run(browser, settings));
}
await browser.close();
