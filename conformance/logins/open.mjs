// The program that `BROWSER` names: passes the URL of a page to the browser of `browser.mjs`.

await fetch(process.env.LOGINS_BROWSER, { method: "POST", body: process.argv[2] });
