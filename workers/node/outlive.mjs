// Durable tools for MCP: functions with steps, input requests and timers that survive crashes.
//
// `outlive serve FILE` starts a program with tools and speaks with it over its standard input and output. The page
// docs/workers-protocol.md describes the lines. Types are in outlive.d.mts.

import { AsyncLocalStorage } from "node:async_hooks";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

const VERSION = "0.1.0";
const MAX_LINE = 4 << 20;
const MAX_VALUE = MAX_LINE - (8 << 10); // The entry must also fit a line of a later call.
const MAX_TEXT = 16 << 10;
const MAX_AHEAD = 64;
const MAX_BACKOFF = 10_000;
const REPLIES = ["recorded", "go", "rejected", "response", "woke", "completion_token", "completed"];
/** The promise of every operation of a dropped run. Code that waits for it never continues, and is collected. */
const NEVER = new Promise(() => {});
/** The body of a step that is being executed. */
const executing = new AsyncLocalStorage();

// Errors.

class NamedError extends Error {
  get name() {
    return this.constructor.name;
  }
}

/** Failure of a tool. The model reads its text. */
export class ToolError extends NamedError {}

/** Failure of a step that another execution would repeat. The journal records its text. */
export class Permanent extends ToolError {}

/** A step, an input request, a timer or an external event without a result. */
export class DurableError extends NamedError {
  constructor(key, message, kind = "", rejected = false) {
    super(message);
    Object.assign(this, { key, kind, rejected });
  }
}

/** The run has used the key. */
export class DuplicateKey extends DurableError {}
/** The operation is not allowed inside of a step. */
export class InsideStep extends DurableError {}
/** The run has ended. */
export class RunEnded extends DurableError {}
/** A value, a block or the journal exceeds a limit. */
export class TooLarge extends DurableError {}
/** A step with `once` was in progress when its process ended. It may have taken effect. */
export class Ambiguous extends DurableError {}
/** The input request or the external event has timed out. */
export class TimedOut extends DurableError {}
/** The task is cancelled. Let this error end the handler. */
export class TaskCancelled extends DurableError {}
/** The client does not support this input request. */
export class MissingCapability extends DurableError {}
/** The user declined the input request. */
export class Declined extends DurableError {}
/** The user dismissed the input request. */
export class Cancelled extends DurableError {}

const KINDS = {
  duplicate_key: DuplicateKey, inside_step: InsideStep, run_ended: RunEnded, too_large: TooLarge, ambiguous: Ambiguous,
  timed_out: TimedOut, cancelled: TaskCancelled, missing_capability: MissingCapability,
};

function rejection({ rejected, kind = "", message = `the server rejected \`${rejected}\`: ${kind}` }) {
  return new (Object.hasOwn(KINDS, kind) ? KINDS[kind] : DurableError)(rejected, message, kind, true);
}

/** A JSON value that does not fit its type. */
class Mismatch extends TypeError {
  constructor(path, expected, value) {
    super(`\`${path}\` ${value === undefined ? "is missing" : `must be ${expected}, not ${JSON.stringify(value).slice(0, 60)}`}`);
  }
}

// Types.

/** A JSON Schema, and the function that reads a value of it. */
class Type {
  constructor(schema, read, isOptional = false) {
    Object.assign(this, { schema, read, isOptional });
  }

  optional() {
    return new Type(this.schema, this.read, true);
  }

  nullable() {
    const read = (value, path) => (value === null ? null : this.read(value, path));
    return new Type({ anyOf: [this.schema, { type: "null" }] }, read, this.isOptional);
  }

  describe(description) {
    return new Type({ ...this.schema, description }, this.read, this.isOptional);
  }
}

function basic(type, expected, fits) {
  return (keywords) => new Type({ type, ...keywords }, (value, path) => {
    if (!fits(value)) throw new Mismatch(path, expected, value);
    return value;
  }, keywords !== undefined && "default" in keywords);
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const object = basic("object", "an object", isObject);
const array = basic("array", "an array", Array.isArray);

/** Returns a type whose value has parts of other types. `parts` returns each part with its type and path. */
function compound(base, keywords, parts, build) {
  const { schema, read, isOptional } = base(keywords);
  return new Type(schema, (value, path) => {
    const values = parts(read(value, path), path).map(([part, type, place]) => type.read(part, place));
    const isAsync = values.some((part) => part instanceof Promise); // of a Standard Schema
    return isAsync ? Promise.all(values).then((all) => build(all, value)) : build(values, value);
  }, isOptional);
}

/** Types of arguments, of forms and of the results of steps. Options are the keywords of JSON Schema. */
export const t = {
  string: basic("string", "a string", (value) => typeof value === "string"),
  number: basic("number", "a number", (value) => typeof value === "number"),
  integer: basic("integer", "an integer", Number.isInteger),
  boolean: basic("boolean", "a boolean", (value) => typeof value === "boolean"),
  any: (keywords = {}) => new Type(keywords, (value) => value),
  enum(values, keywords) {
    return basic("string", `one of ${values.join(", ")}`, (value) => values.includes(value))({ enum: [...values], ...keywords });
  },
  array(source, keywords) {
    const item = asType(source);
    const parts = (value, path) => value.map((part, index) => [part, item, `${path}[${index}]`]);
    return compound(array, { items: item.schema, ...keywords }, parts, (values) => values);
  },
  record(source, keywords) {
    const item = asType(source);
    const parts = (value, path) => Object.entries(value).map(([name, part]) => [part, item, `${path}.${name}`]);
    const build = (values, value) => Object.fromEntries(Object.keys(value).map((name, index) => [name, values[index]]));
    return compound(object, { additionalProperties: item.schema, ...keywords }, parts, build);
  },
  object(fields, keywords) {
    const types = Object.entries(fields).map(([name, field]) => [name, asType(field)]);
    const required = types.filter(([, type]) => !type.isOptional).map(([name]) => name);
    const properties = Object.fromEntries(types.map(([name, type]) => [name, type.schema]));
    const schema = { properties, ...(required.length && { required }), additionalProperties: false, ...keywords };
    const present = (value) => types.filter(([name, type]) => Object.hasOwn(value, name) || !type.isOptional);
    const parts = (value, path) => present(value).map(([name, type]) => [value[name], type, `${path}.${name}`]);
    const defaults = types.filter(([, type]) => type.schema?.default !== undefined).map(([name, type]) => [name, type.schema.default]);
    return compound(object, schema, parts, (values, value) => ({
      ...structuredClone(Object.fromEntries(defaults)),
      ...Object.fromEntries(present(value).map(([name], index) => [name, values[index]])),
    }));
  },
};

/** Returns the type of `t`, of a Standard Schema with a JSON Schema, of an object of fields, or of a JSON Schema. */
function asType(source = {}, where = "type") {
  if (source instanceof Type) return source;
  const standard = source["~standard"];
  if (standard) {
    const { $schema, ...schema } = standard.jsonSchema?.input({ target: "draft-2020-12" }) ?? { $schema: null };
    return new Type($schema === null ? undefined : schema, async (value, path) => {
      const { issues = [], value: found } = await standard.validate(value);
      const place = (issue) => [path, ...(issue.path ?? []).map((part) => part.key ?? part)].join(".");
      if (issues.length) throw new TypeError(issues.map((issue) => `\`${place(issue)}\`: ${issue.message}`).join("; "));
      return found;
    }, !(standard.validate(undefined).issues ?? standard.validate(undefined) instanceof Promise));
  }
  if (!isObject(source)) throw new TypeError(`${where}: use a type of \`t\`, a Standard Schema or a JSON Schema`);
  const isFields = Object.values(source).every((value) => value instanceof Type || value?.["~standard"]);
  return isFields ? t.object(source) : new Type(source, (value) => value);
}

function schemaOf(type, where) {
  if (!type.schema) throw new TypeError(`${where}: the schema has no JSON Schema; use zod 4.2 or newer, or \`t\``);
  return type.schema;
}

/** Returns the fields of a form, the required fields, and the function that reads its content. */
function formOf(source, key) {
  const where = `input request \`${key}\``;
  const type = asType(source, where);
  let schema = schemaOf(type, where);
  let single = "";
  if (!schema.properties) {
    single = schema.type === "boolean" ? "yes" : schema.enum ? "choice" : "value";
    schema = t.object({ [single]: type }).schema;
  }
  const fields = {};
  let required = schema.required ?? [];
  for (const [name, field] of Object.entries(schema.properties)) {
    const { anyOf = [], ...flat } = field;
    const arms = anyOf.filter((arm) => arm.type !== "null");
    if (arms.length === 1) required = required.filter((other) => other !== name);
    fields[name] = arms.length === 1 ? { ...arms[0], ...flat } : field;
    const { type: kind, items } = fields[name];
    if (!["string", "integer", "number", "boolean"].includes(kind) && !(items?.enum && items.type === "string")) {
      throw new TypeError(`${where}: the field \`${name}\` must be text, a number, yes or no, or choices of text`);
    }
  }
  return { fields, required, read: (content) => type.read(single ? content?.[single] : content, "response") };
}

// Values.

/** Returns a value as JSON. Throws if JSON would lose a part of it. */
function toJson(value) {
  return JSON.stringify(value ?? null, (key, part) => {
    const isNumber = typeof part === "number";
    const kind = part instanceof Map || part instanceof Set ? part.constructor.name : isNumber ? String(part) : typeof part;
    if (["Map", "Set", "function", "symbol", "bigint"].includes(kind) || (isNumber && !Number.isFinite(part))) {
      throw new TypeError(`a value of the type \`${kind}\` is not JSON; return text, numbers, arrays or objects`);
    }
    return part;
  });
}

/** Returns a journal key: the parts, escaped and joined by `/`. */
function join(scope, key) {
  const parts = (Array.isArray(key) ? key : [key]).map((part) => {
    if (!["string", "number", "bigint", "boolean"].includes(typeof part)) {
      throw new TypeError(`a part of a key is \`${part}\`; use text, a number or an ID`);
    }
    return String(part).replace(/[\\/#]/g, "\\$&");
  });
  return (scope ? [scope, ...parts] : parts).join("/");
}

/** Returns a time in milliseconds: a number, or an object of days, hours, minutes and seconds. */
function milliseconds(time) {
  if (time === undefined) return undefined;
  const { days = 0, hours = 0, minutes = 0, seconds = 0 } = time;
  const total = typeof time === "number" ? time : (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000;
  return Math.max(0, Math.round(total));
}

const cancelText = (key) => `the task was cancelled before \`${key}\` completed`;

function checkSize(key, name, text, remedy) {
  const size = Buffer.byteLength(text);
  if (size > MAX_VALUE) throw new TooLarge(key, `${name} has ${size} bytes, above the limit of ${MAX_VALUE}; ${remedy}`);
}

/** A result of several content blocks, or with structured content beside text. */
export class Result {
  constructor(content, { structured, isError } = {}) {
    Object.assign(this, { content, structured, isError });
  }
}

// Runs.

/** State of one run: its keys, its open requests and its last line. */
class Run {
  constructor(worker, handler, line, journal) {
    Object.assign(this, { worker, handler, line, journal: new Map(Object.entries(journal)) });
    this.tag = "call" in line ? { call: line.call } : { cleanup: line.cleanup };
    Object.assign(this, { used: new Set(), replayed: [], waiting: new Map(), early: new Map(), sent: new Map() });
    this.noted = new Set(); // keys that the server knows to be requested
    this.state = "running"; // then `ended`, or `dropped` until its steps end, then `gone`
    this.cancelled = undefined;
    this.bodies = 0;
    this.emitted = this.stored = 0;
    Object.assign(this, { ahead: [], rejectedBlocks: [] });
    this.abort = new AbortController();
  }

  async main() {
    let last;
    try {
      last = this.success(await this.handler.call(this));
    } catch (error) {
      last = this.failure(error);
    }
    if (this.state === "running") this.end("ended", last); // Otherwise, the last line is sent already.
  }

  end(state, last) {
    this.state = state;
    this.write(last);
    this.worker.ended(this);
  }

  success(result) {
    let members = "cleanup" in this.tag ? { done: true } : { return: result ?? null };
    if (result instanceof Result) {
      members = { result: { content: result.content, structuredContent: result.structured, isError: result.isError } };
    }
    checkSize("", "the result", toJson(members), "use emit, or return a link");
    return members;
  }

  failure(thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    const kind = error instanceof ToolError || error instanceof DurableError ? "ToolError" : error.name;
    const stack = error.stack ?? "";
    const place = this.worker.dev && kind !== "ToolError" ? placeOf(stack) : "";
    const text = error.message.slice(0, MAX_TEXT) || error.name;
    return { error: text + place, kind, traceback: stack.slice(0, MAX_TEXT), rejected: error.rejected ? error.key : undefined };
  }

  // Lines.

  receive(line) {
    if ("drop" in line) this.drop();
    else if ("cancel" in line) {
      this.cancelled = String(line.cancel);
      this.abort.abort(new TaskCancelled("", "the task was cancelled"));
    } else if ("stored_segments" in line || "segment" in line) {
      this.stored = Math.max(this.stored, line.stored_segments ?? 0);
      if ("segment" in line) this.rejectedBlocks.push(rejection(line));
      this.ahead.splice(0).forEach((proceed) => proceed());
    } else {
      const name = REPLIES.find((reply) => reply in line);
      if (name) this.resolve(line[name], line);
      else this.worker.log(`unknown message: ${JSON.stringify(line).slice(0, 200)}`);
    }
  }

  resolve(key, line) {
    const waiter = this.waiting.get(key);
    this.waiting.delete(key);
    if (!waiter) this.early.set(key, line);
    else if ("rejected" in line) waiter.reject(rejection(line));
    else waiter.resolve(line);
  }

  /** Ends the run without a result. Its promises never settle. */
  drop() {
    if (this.state !== "running") return;
    this.state = "dropped";
    this.abort.abort(new DurableError("", "the run is dropped"));
    this.waiting.clear();
    this.ahead.length = 0;
    this.endDropped();
  }

  endDropped() {
    if (this.state === "dropped" && this.bodies === 0) this.end("gone", { dropped: true });
  }

  get isGone() {
    return this.state === "dropped" || this.state === "gone";
  }

  /** Returns the next line of the server for a key. Rejects if it is a rejection. */
  reply(key) {
    if (this.isGone) return NEVER;
    const early = this.early.get(key);
    this.early.delete(key);
    return new Promise((resolve, reject) => {
      this.waiting.set(key, { resolve, reject });
      if (early) this.resolve(key, early);
    });
  }

  send(members) {
    if (this.state === "ended") throw new RunEnded("send", "the context is used after its run has ended");
    if (!this.isGone) this.write(members);
  }

  write(members) {
    if (this.replayed.length && !("dropped" in members)) this.worker.write({ ...this.tag, replayed: this.replayed.splice(0) });
    this.worker.write({ ...this.tag, ...members });
  }

  /** Returns the full key of an operation that starts. Throws if the operation is not allowed. */
  take(scope, key) {
    const full = join(scope, key);
    if (this.state === "ended") throw new RunEnded(full, `\`${full}\` is used after its run has ended`);
    const body = executing.getStore();
    if (body?.run === this) {
      const text = `\`${full}\` is used inside the step \`${body.key}\`; start steps, input requests and timers outside of steps`;
      throw this.worker.misuse(new InsideStep(full, text));
    }
    if (this.cancelled !== undefined) throw new TaskCancelled(full, cancelText(full));
    if (this.used.has(full)) {
      const text = `the key \`${full}\` is used twice in one run; add a part, such as ["push", region], or use a scope`;
      throw this.worker.misuse(new DuplicateKey(full, text));
    }
    this.used.add(full);
    return full;
  }

  // Steps.

  /** Returns the value of a journal entry, or throws its failure. */
  async recorded(key, entry, type) {
    let value = "v" in entry ? entry.v : "x" in entry ? entry.x : entry.a?.content;
    const migrate = Object.hasOwn(this.handler.migrations, entry.r ?? "") ? this.handler.migrations[entry.r ?? ""] : undefined;
    try {
      if (migrate && !entry.f) value = migrate(key, value);
      if (type && !entry.f) value = await asType(type).read(value, key);
    } catch (error) {
      if ("cleanup" in this.tag) throw error;
      if (this.isGone) return NEVER;
      this.abort.abort(error);
      this.end("gone", { incompatible: key, message: error.message });
      return NEVER;
    }
    if (this.isGone) return NEVER;
    if (!this.noted.has(key) && "call" in this.tag) {
      this.noted.add(key);
      this.replayed.push(key);
    }
    if (entry.f) throw new Permanent(entry.f.message);
    return value;
  }

  /** Executes the body of a step. */
  async execute(body, fn) {
    this.bodies += 1;
    try {
      return await executing.run(body, fn);
    } finally {
      this.bodies -= 1;
      this.endDropped();
    }
  }
}

/** Returns the innermost line of the author's code in a stack. */
function placeOf(stack) {
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  const own = frames.find((line) => !line.includes(import.meta.url) && !/node:|node_modules/.test(line)) ?? "";
  const [, name = "handler", file, number] = /at (?:async )?(?:(\S+).* \()?(?:file:\/\/)?(.*?):(\d+):\d+\)?$/.exec(own) ?? [];
  return file ? ` (${file.split("/").at(-1)}:${number} in ${name})` : "";
}

// Contexts.

/** Members of all contexts. */
class Base {
  constructor(run, scope = "") {
    Object.defineProperties(this, { _run: { value: run }, _scope: { value: scope } });
  }

  get principal() {
    const { name, scopes = [] } = this._run.line.principal ?? {};
    return name === undefined ? undefined : { name, scopes };
  }

  idempotencyKey(key) {
    const text = (this._run.line.idempotency_key ?? "") + join(this._scope, key);
    return createHash("sha256").update(text).digest("hex").slice(0, 32);
  }
}

/** Returns a context whose keys have `key` as their prefix, for helpers and loops. */
function scope(key) {
  return new this.constructor(this._run, join(this._scope, key));
}

/** Returns the recorded result of a step, or undefined. */
async function get(key, type) {
  const full = join(this._scope, key);
  return this._run.journal.has(full) ? this._run.recorded(full, this._run.journal.get(full), type) : undefined;
}

/** Context of a cleanup, which runs after a cancelled or expired task. */
export class Cleanup extends Base {
  get reason() {
    return this._run.line.reason;
  }
}

/** Context of a handler that runs once. */
export class Context extends Base {
  get attempt() {
    return this._run.line.attempt ?? 1;
  }

  get cancelled() {
    return this._run.cancelled !== undefined;
  }

  /** An abort signal for a cancelled call and for a dropped run. */
  get signal() {
    return this._run.abort.signal;
  }

  setStatusMessage(text) {
    this._run.send({ status_message: text });
  }

  progress(done, total, message) {
    this._run.send({ progress: done, total, message });
  }

  log(level, data) {
    this._run.send({ log: level, data: data ?? null });
  }

  /** Adds a content block to the result while the handler runs. Waits if the server is behind. */
  async emit(block) {
    const run = this._run;
    const content = typeof block === "string" ? { type: "text", text: block } : block;
    checkSize("emit", "the block", toJson(content), "split it");
    const body = executing.getStore();
    const isInside = body?.run === run;
    const place = isInside ? body.key : this._scope;
    if (isInside && (body.emitted += 1) <= (run.sent.get(place) ?? 0)) return; // An earlier attempt of this step has sent it.
    while (run.emitted - run.stored >= MAX_AHEAD && !run.rejectedBlocks.length && !run.isGone) {
      await new Promise((proceed) => run.ahead.push(proceed));
    }
    if (run.isGone) return NEVER;
    if (run.rejectedBlocks.length) throw run.rejectedBlocks.shift();
    run.emitted += 1;
    run.sent.set(place, (run.sent.get(place) ?? 0) + 1);
    run.send({ emit: content, ...(place && { in: place }) });
  }
}

Context.prototype.reportProgress = Context.prototype.progress;
for (const level of ["debug", "info", "warning", "error"]) {
  Context.prototype[level] = function log(data) {
    this.log(level, data);
  };
}

/** Context of a handler that may run again from its first line. */
export class Durable extends Context {
  /** Executes `fn` and records its result. A replay returns the recorded result. */
  async step(key, fn, { retry = 1, once = false, secret = false, type } = {}) {
    const run = this._run;
    if (run.isGone) return NEVER;
    if (typeof fn !== "function") throw new TypeError(`step \`${key}\` needs a function, such as () => build(repo), not a result`);
    const full = run.take(this._scope, key);
    if (run.journal.has(full)) return run.recorded(full, run.journal.get(full), type);
    run.send({ step: full, once: once || undefined });
    if (once) {
      const { recorded, failed, value } = await run.reply(full);
      if (recorded) return run.recorded(full, failed === undefined ? { v: value } : { f: { message: failed } }, type);
    }
    const body = () => ({ run, key: full, emitted: 0 });
    let value;
    let found;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const text = toJson(await run.execute(body(), fn));
        checkSize(full, `the result of \`${full}\``, text, "record less, such as a name");
        value = JSON.parse(text);
        found = type ? await asType(type).read(JSON.parse(text), full) : JSON.parse(text);
        break;
      } catch (error) {
        if (run.isGone) return NEVER;
        const permanent = once || error instanceof Permanent;
        const isLast = attempt >= retry || error instanceof Mismatch || run.cancelled !== undefined;
        if (permanent || isLast) await fail(run, full, error, permanent);
      }
      await run.worker.pause(Math.min(100 * 2 ** (attempt - 1), MAX_BACKOFF));
      if (run.isGone) return NEVER;
    }
    if (run.isGone) return NEVER;
    run.send({ done: full, value, secret: secret || undefined });
    await run.reply(full);
    run.journal.set(full, { v: value });
    run.noted.add(full);
    return found;
  }

  /** Requests that the user fills in a form. Throws `Declined` or `Cancelled` unless `outcome` is true. */
  async elicit(key, message, form, options = {}) {
    const { fields, required, read } = formOf(form, join(this._scope, key));
    return this.#input(key, { message, fields, required }, options, read);
  }

  /** Requests that the user opens a page, for a login, a payment or a password. */
  async elicitUrl(key, message, url, options = {}) {
    return this.#input(key, { message, url }, options, () => undefined);
  }

  /** Requests a message of the client's model. `params` are those of `sampling/createMessage`. */
  async sample(key, prompt, { maxTokens = 1000, timeout, ...params } = {}) {
    const messages = typeof prompt === "string" ? [{ role: "user", content: { type: "text", text: prompt } }] : prompt;
    return this.#input(key, { sample: { messages, maxTokens, ...params } }, { timeout });
  }

  async #input(key, request, { timeout, audience, outcome = false }, read) {
    const run = this._run;
    if (run.isGone) return NEVER;
    const full = run.take(this._scope, key);
    run.send({ input: full, ...request, timeout_ms: milliseconds(timeout), audience });
    const { action, content, result } = await run.reply(full);
    if (!read) return result;
    if (action === "decline" && !outcome) throw new Declined(full, `the user declined the input request \`${full}\``);
    if (action === "cancel" && !outcome) throw new Cancelled(full, `the user cancelled the input request \`${full}\``);
    const found = action === "accept" ? await read(content) : undefined;
    return outcome ? { action, content: found } : found;
  }

  /** Waits. The time starts when the call first reaches this key, and uses no memory meanwhile. */
  async sleep(key, time) {
    const run = this._run;
    if (run.isGone) return NEVER;
    const full = run.take(this._scope, key);
    run.send({ sleep: full, ms: milliseconds(time) });
    await run.reply(full);
  }

  /** Creates an event for which another system delivers a value. `value()` of the result waits for it. */
  async externalEvent(key, { timeout, type } = {}) {
    const run = this._run;
    if (run.isGone) return NEVER;
    const full = run.take(this._scope, key);
    run.send({ external_event: full, timeout_ms: milliseconds(timeout) });
    const { value: token } = await run.reply(full);
    let delivered;
    const wait = async () => {
      const { value } = await run.reply(full);
      return type ? asType(type).read(value, full) : value;
    };
    return { token, value: () => (delivered ??= wait()) };
  }
}

Object.assign(Cleanup.prototype, { scope, get });
Object.assign(Durable.prototype, { scope, get });

async function fail(run, key, thrown, permanent) {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const text = error.message || error.name;
  run.send({ failed: key, error: text, kind: error.name, permanent: permanent || undefined });
  if (permanent) {
    await run.reply(key);
    throw new Permanent(text, { cause: error });
  }
  run.used.delete(key);
  throw thrown;
}


// Tools.

const OPTIONS = ["title", "description", "task", "readOnly", "destructive", "idempotent", "openWorld", "scopes", "streamsContent"]
  .concat("handlerRevision", "resumePolicy", "onCrash");
const snakeCase = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A declared tool. */
class Tool {
  constructor(app, name, options, fn, isDurable) {
    const { input, output, migrateJournal, taskAfter, timeout, ...rest } = options;
    const unknown = Object.keys(rest).find((option) => !OPTIONS.includes(option));
    if (unknown) throw new TypeError(`tool \`${name}\`: unknown option \`${unknown}\``);
    Object.assign(this, { app, name, fn });
    const where = `tool \`${name}\``;
    this.input = asType(input, where);
    this.declared = {
      name, ...Object.fromEntries(Object.entries(rest).map(([option, value]) => [snakeCase(option), value])),
      task_after_ms: milliseconds(taskAfter), timeout_ms: milliseconds(timeout), durable: isDurable,
      inputSchema: schemaOf(this.input, where), outputSchema: output && schemaOf(asType(output, where), where),
      migrates: migrateJournal ? true : undefined,
    };
    this.handlerOf = (Class, handle) => ({
      migrations: migrateJournal ?? {},
      call: async (run) => handle(new Class(run), await this.input.read(run.line.arguments ?? {}, "arguments")),
    });
    this.handler = this.handlerOf(isDurable ? Durable : Context, fn);
  }

  cleanup(fn) {
    this.cleanupHandler = this.handlerOf(Cleanup, fn);
    return this;
  }

  get entry() {
    const code = createHash("sha256").update(this.fn.toString()).digest("hex").slice(0, 6);
    return { ...this.declared, has_cleanup: this.cleanupHandler ? true : undefined, code };
  }
}

/** The tools of a program, and the objects that they share. */
export class Outlive {
  constructor(name) {
    Object.assign(this, { name, tools: new Map(), lifespans: [], worker: undefined });
  }

  /** Declares a tool that may run again from its first line. */
  durable(name, options, fn) {
    return this.#declare(new Tool(this, name, options, fn, true));
  }

  /** Declares a tool that runs once. */
  tool(name, options, fn) {
    return this.#declare(new Tool(this, name, options, fn, false));
  }

  #declare(tool) {
    if (this.tools.has(tool.name)) throw new TypeError(`the tool \`${tool.name}\` is declared twice; choose another name`);
    this.tools.set(tool.name, tool);
    this.worker?.write({ tools: this.entries });
    return tool;
  }

  get entries() {
    return [...this.tools.values()].map((tool) => tool.entry);
  }

  /** Declares a function that opens what the process shares. It may return a function that closes it. */
  lifespan(open) {
    this.lifespans.push(open);
  }

  async open() {
    const closers = [];
    for (const open of this.lifespans) closers.unshift(await open());
    return async () => {
      for (const close of closers) await close?.();
    };
  }

  /** Serves the tools. Started by hand, the program becomes `outlive serve FILE` with its arguments. */
  run() {
    const file = process.argv[1] && realpathSync(process.argv[1]);
    const caller = new Error().stack.split("\n")[2] ?? "";
    // Has no effect in a module that is imported, for example by a test.
    if (!file || ![pathToFileURL(file).href, `(${file}:`, ` ${file}:`].some((place) => caller.includes(place))) return;
    if (process.env.OUTLIVE_WORKER) return void serve(this);
    const child = spawn("outlive", ["serve", file, ...process.argv.slice(2)], { stdio: "inherit" });
    child.on("error", () => {
      console.error("the program `outlive` is not on the path; install it, then run this file again");
      process.exit(1);
    });
    child.on("exit", (code) => process.exit(code ?? 1));
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
  }
}

// The process.

/** The runs of one process, which writes lines with `output`. */
class Worker {
  constructor(app, output) {
    Object.assign(this, { app, output, nonce: "", dev: false, isDraining: false, runs: new Map(), pieces: new Map(), lines: [] });
  }

  /** Handles a line of the server. */
  receive(line) {
    const name = "cleanup" in line ? "cleanup" : "call";
    const key = `${name} ${line[name]}`;
    const run = this.runs.get(key);
    if ("welcome" in line) this.start(line.welcome);
    else if ("tool" in line) this.add(name, key, line);
    else if (run) run.receive(line);
    else if ("more" in line) this.pieces.set(key, { ...this.pieces.get(key), ...line.journal });
    else if ("ping" in line) this.write({ pong: line.ping });
    else if ("drain" in line) {
      this.isDraining = true;
      this.checkFinished();
    } else if ("goodbye" in line) {
      this.log(line.goodbye);
      process.exit(2);
    } else if (!(name in line)) this.log(`unknown message: ${JSON.stringify(line).slice(0, 200)}`);
  }

  async start({ nonce, dev = false }) {
    Object.assign(this, { nonce, dev });
    this.close = await this.app.open().catch((error) => {
      console.error(error);
      process.exit(2);
    });
    this.write({ hello: { protocol: 1, sdk: `outlive-node ${VERSION}`, name: this.app.name, tools: this.app.entries } });
    this.app.worker = this;
    // An error that no code handles belongs to one call. The others continue.
    for (const event of ["unhandledRejection", "uncaughtException"]) process.on(event, (error) => console.error(`${event}:`, error));
  }

  add(name, key, line) {
    const tool = this.app.tools.get(line.tool);
    const handler = name === "call" ? tool?.handler : tool?.cleanupHandler;
    const journal = { ...this.pieces.get(key), ...line.journal };
    this.pieces.delete(key);
    if (!handler) return this.write({ [name]: line[name], error: `unknown tool \`${line.tool}\``, kind: "ToolError" });
    const run = new Run(this, handler, line, journal);
    this.runs.set(key, run);
    run.main();
  }

  /** Writes a line, together with the other lines of this turn of the event loop. */
  write(members) {
    const line = `${JSON.stringify({ nonce: this.nonce, ...members })}\n`;
    if (line.length > MAX_LINE / 4) checkSize("", "a line", line, "use emit, or return a link");
    if (this.lines.push(line) === 1) queueMicrotask(() => this.flush());
  }

  flush() {
    if (this.lines.length) this.output(this.lines.splice(0).join(""));
  }

  pause(time) {
    return new Promise((proceed) => setTimeout(proceed, time));
  }

  /** Returns the error of an author's mistake. A test fails because of it, also if the handler catches it. */
  misuse = (error) => error;

  ended({ tag }) {
    const [[name, number]] = Object.entries(tag);
    this.runs.delete(`${name} ${number}`);
    this.checkFinished();
  }

  async checkFinished() {
    if (!this.isDraining || this.runs.size) return;
    await this.close?.();
    this.flush();
    process.exit(0);
  }

  log(text) {
    console.error(`outlive: ${text}`);
  }
}

/** Serves calls on standard input and output. Other output goes to standard error. */
function serve(app) {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  process.stdout.on("error", () => process.exit(0));
  const worker = new Worker(app, write);
  let unread = [];
  process.stdin.on("data", (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...unread, chunk.subarray(start, end)]).toString();
      unread = [];
      start = end + 1;
      if (line) worker.receive(JSON.parse(line));
    }
    unread.push(chunk.subarray(start));
  });
  process.stdin.on("end", () => process.exit(0));
}

// Test kit: a server in memory that loses runs.

const TEST_TIMEOUT = 30_000;
const shown = JSON.stringify;

/** A handler that breaks the rules of replay, or a test that lacks a response. */
export class TestFailure extends NamedError {}

class TestWorker extends Worker {
  received = [];
  write(members) {
    this.received.push(JSON.parse(shown(members)));
    this.wake?.();
  }
  async pause() {}
  misuse = (error) => (this.mistake = error);
}

/** Result of a call. `executed` counts the executions of each step, in the worst of all tried crashes. */
class TestOutcome {
  get isError() {
    return "error" in this.line || this.line.result?.isError === true;
  }
  /** The text that the model reads, without emitted blocks. */
  get text() {
    const { error, kind, result, return: value } = this.line;
    if (error !== undefined) return kind === "ToolError" ? error : `${kind}: ${error}`;
    if (result) return result.content.flatMap((block) => block.text ?? []).join("\n");
    return typeof value === "string" ? value : value === null ? "" : shown(value);
  }
  get structured() {
    return this.line.result ? this.line.result.structuredContent : this.line.return;
  }
}

/** A call of a tool with scripted responses. */
class TestCall {
  constructor(tool, args) {
    const principal = { name: "test", scopes: [] };
    this.line = { tool: tool.name, arguments: JSON.parse(toJson(args)), idempotency_key: "test", principal, attempt: 1 };
    Object.assign(this, { tool, responses: new Map(), isStrict: false });
  }
  /** Scripts the members of a response, such as `{ result: … }` of sampling or `{ rejected: …, kind: … }`. */
  respond(key, response) {
    this.responses.set(join("", key), response);
    return this;
  }
  accept(key, content) {
    return this.respond(key, { action: "accept", content });
  }
  decline(key) {
    return this.respond(key, { action: "decline" });
  }
  cancel(key) {
    return this.respond(key, { action: "cancel" });
  }
  /** Another system delivers the value of an external event. */
  complete(key, value) {
    return this.respond(key, { value });
  }
  /** Fails the test if a scripted response is not used. */
  strict() {
    this.isStrict = true;
    return this;
  }
  /** Runs the call. The run is replayed at every input request, and once at its end. */
  async run() {
    return (await this.#play()).outcome;
  }
  /** Runs the call and loses the run after `key` is recorded. */
  async crashAfter(key) {
    const play = await this.#play();
    return this.#compared(play, play.indexOf(join("", key)));
  }
  /** Runs the call once without a crash, and once with a crash after each journal entry. The results must be equal. */
  async crashAfterEach() {
    const play = await this.#play();
    for (const index of play.entries.keys()) await this.#compared(play, index);
    return play.outcome;
  }
  /** Runs the call and cancels its task after `key` is recorded. The cleanup of the tool runs if the handler fails. */
  async cancelAfter(key) {
    const play = await this.#play(0, join("", key));
    play.indexOf(join("", key));
    return play.outcome;
  }
  async #compared({ outcome, entries }, index) {
    const { outcome: other } = await this.#play(index + 1);
    const [found, expected] = [other, outcome].map(({ text, structured, segments }) => shown({ text, structured, segments }));
    const place = `after a crash behind \`${entries[index]}\``;
    if (found !== expected) throw new TestFailure(`${place} the result is ${found}, not ${expected}; ${REMEDY}`);
    for (const [step, count] of Object.entries(other.executed)) outcome.executed[step] = Math.max(count, outcome.executed[step] ?? 0);
    return outcome;
  }
  async #play(crashAt = 0, cancelAfter = undefined) {
    const close = await this.tool.app.open();
    const play = new Play(this, crashAt, cancelAfter);
    await play.finish().finally(close);
    return play;
  }
}

const REMEDY = "put every effect and every decision into a step";

/** One call: its journal, and the server's side of its runs. */
class Play {
  constructor(call, crashAt, cancelAfter) {
    Object.assign(this, { call, crashAt, cancelAfter, worker: new TestWorker(call.tool.app) });
    Object.assign(this, { journal: {}, responses: new Map(), due: new Map(), marks: new Set(), segments: new Map() });
    Object.assign(this, { entries: [], inputs: [], statuses: [], executed: {}, now: 0, number: 0, isCancelled: false });
  }
  indexOf(key) {
    if (!this.entries.includes(key)) throw new TestFailure(`\`${key}\` is never recorded; the call records ${shown(this.entries)}`);
    return this.entries.indexOf(key);
  }
  async finish() {
    let line;
    while (!line) line = await this.run("call");
    const executed = { ...this.executed };
    const cancelled = this.isCancelled && "error" in line;
    if (!("error" in line) && !this.isCancelled) await this.checkReplay(line);
    if (this.worker.mistake) throw new TestFailure(this.worker.mistake.message, { cause: this.worker.mistake });
    const unused = [...this.call.responses.keys()].filter((key) => !this.responses.has(key));
    if (this.call.isStrict && unused.length) throw new TestFailure(`the scripted responses to ${shown(unused)} are not used`);
    const steps = this.entries.filter((key) => Object.hasOwn(this.journal, key));
    const { done, error } = (cancelled && this.call.tool.cleanupHandler && (await this.run("cleanup", { reason: "cancelled" }))) || {};
    this.outcome = Object.assign(new TestOutcome(), {
      line, steps, inputRequests: this.inputs, segments: [...this.segments.values()], statusMessages: this.statuses, executed, cancelled,
      cleanup: done ? "done" : error,
    });
  }
  async checkReplay(last) {
    this.crashAt = 0;
    const again = await this.run("call");
    const missing = this.entries.filter((key) => !this.seen.has(key));
    if (missing.length) throw new TestFailure(`a replay does not request ${shown(missing)}; base every decision on recorded values`);
    if (shown({ ...again, call: 0 }) !== shown({ ...last, call: 0 })) {
      throw new TestFailure(`a replay returns ${shown(again)}, not ${shown(last)}; ${REMEDY}`);
    }
  }
  /** Runs the handler. Returns its last line, or undefined if the run was lost. */
  async run(name, more = {}) {
    Object.assign(this, { tag: { [name]: (this.number += 1) }, last: undefined, isLost: false });
    Object.assign(this, { open: new Set(), seen: new Set(), pending: new Map(), ordinals: {}, emitted: 0 });
    const inputs = [...this.responses].map(([key, response]) => [key, { a: response }]);
    const journal = { ...this.journal, ...(name === "cleanup" && Object.fromEntries(inputs)) };
    this.send({ ...this.call.line, ...more, journal });
    if (this.isCancelled && name === "call") this.send({ cancel: "requested by the client" });
    while (!this.last) {
      for (let turn = 0; turn < 5 && !this.worker.received.length; turn += 1) await new Promise(setImmediate);
      if (this.worker.received.length) this.handle(this.worker.received.shift());
      else if (this.pending.size && !this.open.size && !this.isLost) this.advance();
      else await this.nextLine();
    }
    return "dropped" in this.last ? undefined : this.last;
  }
  nextLine() {
    return new Promise((resolve, reject) => {
      const text = `the handler has not continued for ${TEST_TIMEOUT / 1000} s; it waits for something outside of its context`;
      const timer = setTimeout(() => reject(new TestFailure(text)), TEST_TIMEOUT);
      this.worker.wake = () => resolve(clearTimeout(timer));
    });
  }
  send(members) {
    this.worker.receive(JSON.parse(shown({ ...this.tag, ...members })));
  }
  lose(reason) {
    if (!this.isLost) this.send({ drop: reason });
    this.isLost = true;
  }
  /** Counts a new journal entry. Returns whether the run still exists. */
  record(key) {
    if (this.entries.push(key) === this.crashAt) this.lose("lease_lost");
    return !this.isLost;
  }
  handle({ traceback, ...line }) {
    const is = (...names) => names.some((name) => name in line);
    if (is("return", "result", "error", "dropped", "cleanup")) this.last = line;
    else if (is("incompatible")) {
      throw new TestFailure(`the journal entry \`${line.incompatible}\` does not fit its type: ${line.message}`);
    } else if (this.isLost) return;
    else if (is("step")) this.handleStep(line.step, line.once);
    else if (is("failed") && !line.permanent) this.open.delete(line.failed);
    else if (is("done", "failed")) this.handleResult(line.done ?? line.failed, line);
    else if (is("input", "sleep", "external_event")) this.handleWait(line.input ?? line.sleep ?? line.external_event, line);
    else if (is("replayed")) line.replayed.forEach((key) => this.seen.add(key));
    else if (is("status_message")) this.statuses.push(line.status_message);
    else if (is("emit")) this.handleBlock(line.in ?? "", line.emit);
  }
  handleStep(key, once) {
    this.seen.add(key);
    if (once && this.marks.has(key)) {
      const message = `step \`${key}\` was in progress when its worker crashed; check whether it took effect`;
      return this.send({ rejected: key, kind: "ambiguous", message });
    }
    this.open.add(key);
    this.executed[key] = (this.executed[key] ?? 0) + 1;
    if (once && this.marks.add(key)) this.send({ go: key });
  }
  handleResult(key, { failed, error, value }) {
    this.open.delete(key);
    this.journal[key] = failed === undefined ? { v: value } : { f: { message: error } };
    if (!this.record(key)) return;
    this.send({ recorded: key });
    if (key !== this.cancelAfter) return;
    this.isCancelled = true;
    this.send({ cancel: "requested by the client" });
  }
  handleWait(key, line) {
    this.seen.add(key);
    this.pending.set(key, line);
    if ("input" in line && !this.inputs.includes(key)) this.inputs.push(key);
    if ("external_event" in line) this.send({ completion_token: key, value: `token of ${key}` });
    if (!("sleep" in line) || this.due.has(key)) return;
    this.due.set(key, this.now + line.ms);
    this.record(key);
  }
  handleBlock(place, block) {
    const name = shown([place, (this.ordinals[place] = (this.ordinals[place] ?? 0) + 1)]);
    const stored = this.segments.get(name) ?? block;
    if (shown(stored) !== shown(block)) {
      throw new TestFailure(`a replay emits ${shown(block)}, not ${shown(stored)}; base every decision on recorded values`);
    }
    this.segments.set(name, block);
    this.send({ stored_segments: (this.emitted += 1) });
  }
  /** Continues an idle run: with responses, which replay it, or with the next timer. */
  advance() {
    const keys = [...this.pending.keys()];
    if (this.isCancelled) return keys.forEach((key) => this.deliver(key, { rejected: key, kind: "cancelled", message: cancelText(key) }));
    const waits = keys.filter((key) => !("sleep" in this.pending.get(key)));
    const known = waits.filter((key) => this.responses.has(key));
    if (known.length) return known.forEach((key) => this.deliver(key, this.responses.get(key)));
    for (const key of waits) {
      const response = this.call.responses.get(key);
      if (!response) throw new TestFailure(`\`${key}\` has no scripted response; add one with \`accept\` or \`complete\``);
      this.responses.set(key, response);
      if (!this.record(key)) return;
    }
    if (waits.length) return this.lose("suspended");
    const key = keys.sort((one, other) => this.due.get(one) - this.due.get(other))[0];
    this.now = Math.max(this.now, this.due.get(key));
    this.deliver(key, { woke: key });
  }
  deliver(key, response) {
    const isEvent = "external_event" in this.pending.get(key);
    this.pending.delete(key);
    if ("rejected" in response || "woke" in response) this.send(response);
    else this.send(isEvent ? { completed: key, value: response.value } : { response: key, ...response });
  }
}

/**
 * Prepares a call of a tool in memory. Time is skipped. The test fails if the results of two runs differ, if a run uses
 * a key twice, or if a replay requests less.
 */
export function test(tool, args = {}) {
  return new TestCall(tool, args);
}
