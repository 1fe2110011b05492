// Pages while the store is unavailable, in Chromium: node unavailable.mjs SETTINGS
//
// SETTINGS is JSON: `chromium` is the program, `origin` the server, `sessions` the session of each person, `states` the
// pages to open, `screenshots` a folder or null. Prints one row of the report per line.

import { look } from "./states.mjs";
import { launch, VARIANTS } from "./visit.mjs";

const settings = JSON.parse(process.argv[2]);
const browser = await launch(settings.chromium);
await look(browser, settings, "pages while the store is unavailable", Object.keys(VARIANTS));
await browser.close();
