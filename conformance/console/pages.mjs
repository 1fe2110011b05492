// Pages of one server in Chromium: node pages.mjs SETTINGS
//
// SETTINGS is JSON: `chromium` is the program, `origin` the server, `what` the name of the row, `sessions` the session of
// each person, `states` the pages to open, `screenshots` a folder or null, `short` whether a few variants suffice. Prints
// one row of the report per line.

import { look } from "./states.mjs";
import { FEW, launch, VARIANTS } from "./visit.mjs";

const settings = JSON.parse(process.argv[2]);
const browser = await launch(settings.chromium);
await look(browser, settings, settings.what, settings.short ? FEW : Object.keys(VARIANTS));
await browser.close();
