// The legs of the test: what a person sees and does in the view. Each one starts with a new page.
//
// A leg with a time has further attempts, because other programs of the machine can delay it.

import { PALETTE } from "./view.mjs";

/// The bars.
const PROGRESS_AGE = 1_000, CONTINUE = 1_000, LINES_AGE = 1_000, STALL = 250;

export const LEGS = [
  { name: "progress is at most 1 s old", run: progress, attempts: 3 },
  { name: "150 lines/s without a stall", run: lines, attempts: 3 },
  { name: "form continues the task in 1 s", run: form, attempts: 3 },
  { name: "form rejects an unfit answer", run: unfit },
  { name: "input request for people has no form", run: people },
  { name: "cancel takes two steps", run: cancel },
  { name: "result with text, image and data", run: result },
  { name: "cut result says so", run: cut },
  { name: "tool error is shown", run: failure },
  { name: "text of a server is never HTML", run: hostile },
  { name: "follows the host's theme", run: theme },
  { name: "late view shows the newest lines first", run: late },
  { name: "teardown ends the calls, not the task", run: teardown },
];

async function progress(view, { note, pictures }) {
  await view.follow("render", { frames: 150, millis: 100, stamp: true });
  await view.status("working");
  const ages = await sample(view, 5_000, () => {
    const stamp = Number(/@(\d+)/.exec(document.getElementById("message").textContent)?.[1]);
    const bar = Number(document.getElementById("bar").getAttribute("aria-valuenow"));
    return stamp ? { age: Date.now() - stamp, bar } : null;
  });
  const oldest = Math.max(...ages.map((it) => it.age)), bars = ages.map((it) => it.bar);
  note(`oldest ${oldest} ms`);
  expect(ages.length > 20, `only ${ages.length} samples`);
  expect(oldest <= PROGRESS_AGE, `the progress is ${oldest} ms old`);
  expect(bars.at(-1) > bars[0] && bars.every((bar, i) => i === 0 || bar >= bars[i - 1]), `the bar shows ${bars}`);
  await view.check("working");
  await view.picture(pictures, "working");
}

async function lines(view, { note }) {
  await view.follow("print", { seconds: 9 });
  await view.until("lines", () => document.getElementById("lines").childElementCount > 0);
  const before = (await view.watched()).gap;
  await view.evaluate(() => { globalThis.watched.gap = 0; });
  const ages = await sample(view, 5_000, () => {
    const stamp = Number(/@(\d+)/.exec(document.getElementById("lines").lastChild.textContent)?.[1]);
    const log = document.getElementById("lines");
    return { age: Date.now() - stamp, count: log.childElementCount, atEnd: log.scrollHeight - log.scrollTop - log.clientHeight < 2 };
  });
  const { gap } = await view.watched();
  const oldest = Math.max(...ages.map((it) => it.age));
  note(`newest line at most ${oldest} ms old, longest frame ${Math.round(gap)} ms (${Math.round(before)} ms at the start)`);
  expect(oldest <= LINES_AGE, `the newest line is ${oldest} ms old`);
  expect(gap <= STALL, `a frame took ${Math.round(gap)} ms`);
  expect(ages.every((it) => it.count <= 1_000), "more than 1,000 lines are kept");
  expect(ages.at(-1).atEnd, "the log does not follow its end");
  await view.status("completed");
  const numbers = await view.evaluate(() => [...document.querySelectorAll("#lines div")].map((it) => Number(/^line (\d+)/.exec(it.textContent)[1])));
  expect(numbers.every((number, i) => i === 0 || number === numbers[i - 1] + 1), "lines are missing or out of order");
  expect(numbers.at(-1) === 9 * 150, `the last line is ${numbers.at(-1)}`);
}

async function form(view, { note, pictures }) {
  await view.follow("deploy", { image: "shop:1" });
  await view.status("input_required");
  const labels = await view.evaluate(() => [...document.querySelectorAll(".field")].map((it) => it.querySelector("label, legend").innerText.trim()));
  expect(labels.join() === "Replicas,Go live on,Region,Steps (optional),The release notes are written,Note (optional)", `the fields are ${labels}`);
  await view.check("form");
  await view.picture(pictures, "form");
  await view.type("Replicas", "3");
  await view.type("Go live on", "11182026");
  await view.evaluate(() => document.querySelector("select").focus());
  await view.press("ArrowDown");
  await view.evaluate(() => [...document.querySelectorAll("input[type=checkbox]")].forEach((box) => box.click()));
  const clicked = Date.now();
  await view.click("Send answer");
  const continued = await view.until("continued", () => Number(/answered @(\d+)/.exec(document.body.innerText)?.[1]));
  const shown = Date.now();
  note(`continued after ${continued - clicked} ms, shown after ${shown - clicked} ms`);
  expect(continued - clicked <= CONTINUE, `the task continued after ${continued - clicked} ms`);
  await view.status("completed");
  const text = await view.text("#result");
  expect(/shop:1 ×3 on 2026-11-18 in eu; canary, notify; yes/.test(text), `the result is ${text}`);
}

async function unfit(view) {
  await view.follow("deploy", { image: "shop:2" });
  await view.status("input_required");
  await view.click("Send answer");
  const calls = (await view.seen()).calls.filter((it) => it.name === "task_answer");
  expect(calls.length === 0, "an incomplete form was sent");
  await view.click("Decline");
  await view.status("completed");
  expect(/nothing was deployed/.test(await view.text("#result")), "the answer was not declined");
}

async function people(view, { pictures }) {
  await view.follow("launch");
  await view.status("input_required");
  expect(await view.evaluate(() => !document.querySelector("#inputs input, #inputs button.main")), "there is a form");
  const text = await view.text("#inputs");
  expect(/outlive tasks answer/.test(text), `the text is ${text}`);
  await view.check("people");
  await view.picture(pictures, "people");
}

async function cancel(view, { pictures }) {
  await view.follow("render", { frames: 6_000, millis: 100 });
  await view.status("working");
  await view.click("Cancel task");
  expect((await view.seen()).calls.every((it) => it.name !== "task_cancel"), "one step cancelled the task");
  await view.check("cancel");
  await view.click("Keep running");
  await view.click("Cancel task");
  await view.click("Yes, cancel");
  await view.status("cancelled");
  const [context] = (await view.seen()).contexts;
  expect(/`render` \(task .+\) was cancelled/.test(context?.content[0].text), `the context is ${JSON.stringify(context)}`);
  await view.check("cancelled");
  await view.picture(pictures, "cancelled");
}

async function result(view, { pictures }) {
  await view.follow("render", { frames: 60, millis: 100 }, { palette: PALETTE });
  await view.status("completed");
  const shown = await view.evaluate(() => {
    const image = document.querySelector("#result img");
    return { text: document.querySelector("#result pre").innerText, width: image?.naturalWidth, data: document.querySelector("#result details pre").textContent };
  });
  expect(shown.text === "60 frames", `the text is ${shown.text}`);
  expect(shown.width > 0, "the image is not shown");
  expect(JSON.parse(shown.data).frames === 60, `the data is ${shown.data}`);
  const { contexts, messages } = await view.seen();
  expect(contexts.length === 1 && /`render` \(task .+\) has ended: 60 frames/.test(contexts[0].content[0].text), `the contexts are ${JSON.stringify(contexts)}`);
  expect(messages.length === 0, "a message was sent without a click");
  await view.click("Send to chat");
  await view.until("sent", () => document.querySelector("button.main").innerText === "Sent");
  const sent = (await view.seen()).messages;
  expect(sent.length === 1 && sent[0].content[0].text === contexts[0].content[0].text, `the messages are ${JSON.stringify(sent)}`);
  await view.check("completed");
  await view.picture(pictures, "completed-host-colors");
}

async function cut(view, { pictures }) {
  await view.follow("log", { lines: 40_000 });
  await view.status("completed");
  const text = await view.text("#result");
  expect(/This result is cut: all .+ are stored/.test(text) && /left out here/.test(text), `the result is ${text.slice(0, 300)}`);
  await view.check("cut");
  await view.picture(pictures, "cut");
}

async function failure(view, { pictures }) {
  await view.follow("fail");
  await view.status("failed");
  expect(/the disk is full/.test(await view.text("#result")), "the error is missing");
  await view.check("failed");
  await view.picture(pictures, "failed");
}

async function hostile(view) {
  await view.follow("hostile");
  await view.until("lines", () => document.getElementById("lines").childElementCount > 0);
  await view.status("completed");
  const found = await view.evaluate(() => ({
    ran: globalThis.watched.ran,
    elements: document.querySelectorAll("main img, main b, main script, main a, main iframe").length,
    text: document.body.innerText,
  }));
  expect(!found.ran && found.elements === 0, "HTML of the server was inserted");
  expect(found.text.includes("<img src=x onerror"), "the text is not shown as text");
}

async function theme(view, { pictures }) {
  await view.follow("deploy", { image: "shop:3" }, { theme: "dark", width: 300 });
  await view.status("input_required");
  const background = () => view.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await background();
  await view.check("dark, 300 pixels");
  await view.picture(pictures, "form-dark-300");
  await view.setContext({ theme: "light", styles: { variables: PALETTE } });
  await view.until("light", (dark) => getComputedStyle(document.body).backgroundColor !== dark, dark);
  expect((await background()) === "rgb(255, 253, 248)", `the background is ${await background()}`);
  await view.check("light, 300 pixels");
  await view.picture(pictures, "form-300-host-colors");
  await view.click("Decline");
  await view.status("completed");
  await view.setContext({ theme: "dark", styles: { variables: PALETTE } });
  await view.check("dark, colors of the host");
  await view.follow("print", { seconds: 6 }, { theme: "dark", width: 300 });
  await view.until("lines", () => document.getElementById("lines").childElementCount > 100);
  await view.check("lines, dark, 300 pixels");
  await view.picture(pictures, "lines-dark-300");
}

async function late(view, { note }) {
  await view.follow("burst", { lines: 12_000 });
  const first = await view.until("lines", () => document.getElementById("lines").lastChild?.textContent);
  expect(first === "line 12000", `the first line shown is ${first}`);
  const shown = await view.evaluate(() => [...document.querySelectorAll("#lines div")].map((it) => it.textContent));
  const numbers = shown.slice(1).map((line) => Number(/^line (\d+)$/.exec(line)?.[1]));
  note(shown[0]);
  expect(shown[0] === "11,000 earlier lines are left out", `the gap is ${shown[0]}`);
  expect(numbers.every((number, i) => i === 0 || number === numbers[i - 1] + 1), "lines are missing or out of order");
  expect(/^12,000 lines, the last 1,000 are shown$/.test(await view.text("#count")), `the count is ${await view.text("#count")}`);
  await view.status("completed");
}

async function teardown(view) {
  const task = await view.follow("render", { frames: 600, millis: 100 });
  await view.status("working");
  // The bridge cancels the waiting call of the view, as hosts do; this must not cancel the task.
  await view.teardown();
  await expectNoCalls(view);
  const { structuredContent } = await view.call("task_result", { task, wait_seconds: 0 });
  expect(structuredContent?.task?.status === "working", `the task is ${JSON.stringify(structuredContent)}`);
  await view.call("task_cancel", { task });
}

/// Evaluates a function in the view every 50 ms.
async function sample(view, milliseconds, fn) {
  const found = [], end = Date.now() + milliseconds;
  while (Date.now() < end) {
    const value = await view.evaluate(fn);
    if (value) found.push(value);
    await new Promise((done) => setTimeout(done, 50));
  }
  return found;
}

/// Fails if the view calls a tool within 1.5 seconds.
async function expectNoCalls(view) {
  const { length } = (await view.seen()).calls;
  await new Promise((done) => setTimeout(done, 1_500));
  expect((await view.seen()).calls.length === length, "the view still calls tools");
}

function expect(condition, why) {
  if (!condition) throw new Error(why);
}
