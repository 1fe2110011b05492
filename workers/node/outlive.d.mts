// Types of outlive.mjs.

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A JSON value of the type `T`, as the journal records it: without functions, and with dates as text. */
export type Recorded<T> = T extends null | boolean | number | string
  ? T
  : T extends undefined | void
    ? null
    : T extends { toJSON(): infer J }
      ? J
      : T extends readonly unknown[]
        ? { [I in keyof T]: Recorded<T[I]> }
        : T extends object
          ? { [K in keyof T as T[K] extends Function ? never : K]: Recorded<T[K]> }
          : T;

/** JSON Schema, as an object. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** A type of `t`: a JSON Schema, and the function that reads its values. */
export interface Type<T, Optional extends boolean = boolean> {
  readonly schema: JsonSchema;
  readonly isOptional: Optional;
  read(value: unknown, path: string): T | Promise<T>;
  optional(): Type<T, true>;
  nullable(): Type<T | null, Optional>;
  describe(description: string): Type<T, Optional>;
}

/** A Standard Schema, such as one of zod 4.2 or newer. It needs a JSON Schema where the server or the client sees it. */
export interface StandardSchema<T = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { value: T; issues?: undefined } | { issues: readonly unknown[] } | Promise<unknown>;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
    readonly jsonSchema?: { readonly input: (options: { target: "draft-2020-12" }) => Record<string, unknown> };
  };
}

/** Types by name. */
export type Fields = { readonly [name: string]: Type<any, boolean> | StandardSchema<any> };

/** The type of the values of `S`. */
export type Infer<S> = S extends Type<infer T, boolean>
  ? T
  : S extends { readonly "~standard": { readonly types?: { readonly output: infer T } | undefined } }
    ? T
    : S extends Fields
      ? Simplify<
          { [K in keyof S as S[K] extends Type<any, true> ? never : K]: Infer<S[K]> } & {
            [K in keyof S as S[K] extends Type<any, true> ? K : never]?: Infer<S[K]>;
          }
        >
      : S extends undefined
        ? {}
        : any;

type Simplify<T> = { [K in keyof T]: T[K] } & {};
type Source = Fields | Type<any, boolean> | StandardSchema<any> | JsonSchema;
type Keywords<T> = JsonSchema & { readonly description?: string; readonly default?: T };

/** Types of arguments, of forms and of the results of steps. Options are the keywords of JSON Schema. */
export declare const t: {
  string(keywords?: Keywords<string>): Type<string, false>;
  number(keywords?: Keywords<number>): Type<number, false>;
  integer(keywords?: Keywords<number>): Type<number, false>;
  boolean(keywords?: Keywords<boolean>): Type<boolean, false>;
  any(keywords?: JsonSchema): Type<any, false>;
  enum<const T extends string>(values: readonly T[], keywords?: Keywords<T>): Type<T, false>;
  array<const S extends Source>(item: S, keywords?: JsonSchema): Type<Infer<S>[], false>;
  record<const S extends Source>(item: S, keywords?: JsonSchema): Type<Record<string, Infer<S>>, false>;
  object<const F extends Fields>(fields: F, keywords?: JsonSchema): Type<Infer<F>, false>;
};

/** Parts of a key. The package joins and escapes them. */
export type Key = string | readonly [string, ...(string | number | bigint | boolean)[]];

/** A time in milliseconds, or its parts. */
export type Time = number | { readonly days?: number; readonly hours?: number; readonly minutes?: number; readonly seconds?: number };

/** The parties that may respond to an input request: the client (default), the caller, names, or a scope. */
export type Audience = "client" | "caller" | readonly string[] | { readonly scope: string };

/** A content block of MCP. */
export type Block = { readonly type: string; readonly [member: string]: unknown };

export type Level = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** The authenticated caller. */
export interface Principal {
  readonly name: string;
  readonly scopes: readonly string[];
}

/** The user's action on an input request. Only `accept` has content. */
export type Outcome<T> = { readonly action: "accept"; readonly content: T } | { readonly action: "decline" | "cancel"; readonly content?: undefined };

interface Base {
  /** The caller, or undefined for an anonymous caller. */
  readonly principal: Principal | undefined;
  /** Returns a key for other systems, which is the same in every run of this call. */
  idempotencyKey(key: Key): string;
}

/** Context of a handler that runs once. */
export declare class Context implements Base {
  protected constructor();
  readonly principal: Principal | undefined;
  /** 1, plus the number of processes in a row that this call lost. */
  readonly attempt: number;
  /** Whether the client has cancelled the call. */
  readonly cancelled: boolean;
  /** Aborted if the client cancels the call, or if the run is dropped. */
  readonly signal: AbortSignal;
  idempotencyKey(key: Key): string;
  /** Sets the status message of the task. */
  setStatusMessage(text: string): void;
  /** Reports progress. */
  progress(done: number, total?: number, message?: string): void;
  reportProgress(done: number, total?: number, message?: string): void;
  /** Sends a log message to the client. */
  log(level: Level, data: unknown): void;
  debug(data: unknown): void;
  info(data: unknown): void;
  warning(data: unknown): void;
  error(data: unknown): void;
  /** Adds a content block to the result while the handler runs. Waits if the server is behind. */
  emit(block: string | Block): Promise<void>;
}

export interface StepOptions {
  /** Number of attempts; 1 by default. */
  readonly retry?: number;
  /** Never executes the function twice. If its process ends, the step throws `Ambiguous`. */
  readonly once?: boolean;
  /** The server shows the result to no person and sends it to no client. */
  readonly secret?: boolean;
}

export interface InputOptions {
  readonly timeout?: Time;
  readonly audience?: Audience;
}

/** Result of `sampling/createMessage`. */
export interface SampleResult {
  readonly role: "assistant" | "user";
  readonly model: string;
  readonly content: any;
  readonly stopReason?: string;
}

/** A value that another system delivers. */
export interface ExternalEvent<T> {
  /** The completion token, which authorizes the delivery. */
  readonly token: string;
  /** Waits for the value. */
  value(): Promise<T>;
}

/** Context of a handler that may run again from its first line. */
export declare class Durable extends Context {
  protected constructor();
  /** Executes `fn` and records its result. A replay returns the recorded result. */
  step<const S extends Source>(key: Key, fn: () => unknown, options: StepOptions & { readonly type: S }): Promise<Infer<S>>;
  step<T>(key: Key, fn: () => T | Promise<T>, options?: StepOptions): Promise<Recorded<T>>;
  /** Requests that the user fills in a form. Throws `Declined` or `Cancelled` unless `outcome` is true. */
  elicit<const S extends Source>(key: Key, message: string, form: S, options: InputOptions & { readonly outcome: true }): Promise<Outcome<Infer<S>>>;
  elicit<const S extends Source>(key: Key, message: string, form: S, options?: InputOptions): Promise<Infer<S>>;
  /** Requests that the user opens a page, for a login, a payment or a password. */
  elicitUrl(key: Key, message: string, url: string, options: InputOptions & { readonly outcome: true }): Promise<Outcome<undefined>>;
  elicitUrl(key: Key, message: string, url: string, options?: InputOptions): Promise<void>;
  /** Requests a message of the client's model. Further options are parameters of `sampling/createMessage`. */
  sample(
    key: Key,
    prompt: string | readonly unknown[],
    options?: { readonly maxTokens?: number; readonly timeout?: Time; readonly [parameter: string]: unknown },
  ): Promise<SampleResult>;
  /** Waits. The time starts when the call first reaches this key, and uses no memory meanwhile. */
  sleep(key: Key, time: Time): Promise<void>;
  /** Creates an event for which another system delivers a value. */
  externalEvent<const S extends Source>(key: Key, options: { readonly timeout?: Time; readonly type: S }): Promise<ExternalEvent<Infer<S>>>;
  externalEvent(key: Key, options?: { readonly timeout?: Time }): Promise<ExternalEvent<any>>;
  /** Returns a context whose keys have `key` as their prefix, for helpers and loops. */
  scope(key: Key): Durable;
  /** Returns the recorded result of a step, or undefined. */
  get<const S extends Source>(key: Key, type: S): Promise<Infer<S> | undefined>;
  get(key: Key): Promise<any>;
}

/** Context of a cleanup, which runs after a cancelled or expired task. */
export declare class Cleanup implements Base {
  protected constructor();
  readonly principal: Principal | undefined;
  readonly reason: "cancelled" | "expired";
  idempotencyKey(key: Key): string;
  scope(key: Key): Cleanup;
  /** Returns the recorded result of a step, or undefined. */
  get<const S extends Source>(key: Key, type: S): Promise<Infer<S> | undefined>;
  get(key: Key): Promise<any>;
}

export interface ToolOptions<I extends Source | undefined> {
  readonly title?: string;
  readonly description?: string;
  /** Types of the arguments. */
  readonly input?: I;
  /** Type of the result, if it is an object. */
  readonly output?: Source;
  readonly task?: "never" | "auto" | "always";
  readonly taskAfter?: Time;
  readonly timeout?: Time;
  readonly readOnly?: boolean;
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
  readonly openWorld?: boolean;
  readonly scopes?: readonly string[];
  readonly streamsContent?: boolean;
  readonly onCrash?: "rerun" | "fail";
  readonly handlerRevision?: string;
  readonly resumePolicy?: "any-revision" | "same-revision";
  /** Functions that convert journal entries, by the handler revision that recorded them. */
  readonly migrateJournal?: { readonly [revision: string]: (key: string, value: any) => unknown };
}

/** A declared tool. */
export interface Tool<A> {
  readonly name: string;
  readonly entry: JsonSchema;
  /** Declares the function that runs after a cancelled or expired task of this tool. */
  cleanup(fn: (task: Cleanup, args: A) => unknown): this;
}

/** The tools of a program, and the objects that they share. */
export declare class Outlive {
  constructor(name: string);
  readonly name: string;
  /** Declares a tool that may run again from its first line. */
  durable<const I extends Source | undefined = undefined>(
    name: string,
    options: ToolOptions<I>,
    fn: (ctx: Durable, args: Infer<I>) => unknown,
  ): Tool<Infer<I>>;
  /** Declares a tool that runs once. */
  tool<const I extends Source | undefined = undefined>(
    name: string,
    options: ToolOptions<I>,
    fn: (ctx: Context, args: Infer<I>) => unknown,
  ): Tool<Infer<I>>;
  /** Declares a function that opens what the process shares. It may return a function that closes it. */
  lifespan(open: () => void | (() => unknown) | Promise<void | (() => unknown)>): void;
  /** Serves the tools. Started by hand, the program becomes `outlive serve FILE` with its arguments. */
  run(): void;
}

/** A result of several content blocks, or with structured content beside text. */
export declare class Result {
  constructor(content: readonly Block[], options?: { readonly structured?: unknown; readonly isError?: boolean });
}

/** Failure of a tool. The model reads its text. */
export declare class ToolError extends Error {}
/** Failure of a step that another execution would repeat. The journal records its text. */
export declare class Permanent extends ToolError {}
/** A step, an input request, a timer or an external event without a result. */
export declare class DurableError extends Error {
  readonly key: string;
  readonly kind: string;
}
/** The run has used the key. */
export declare class DuplicateKey extends DurableError {}
/** The operation is not allowed inside of a step. */
export declare class InsideStep extends DurableError {}
/** The run has ended. */
export declare class RunEnded extends DurableError {}
/** A value, a block or the journal exceeds a limit. */
export declare class TooLarge extends DurableError {}
/** A step with `once` was in progress when its process ended. It may have taken effect. */
export declare class Ambiguous extends DurableError {}
/** The input request or the external event has timed out. */
export declare class TimedOut extends DurableError {}
/** The task is cancelled. Let this error end the handler. */
export declare class TaskCancelled extends DurableError {}
/** The client does not support this input request. */
export declare class MissingCapability extends DurableError {}
/** The user declined the input request. */
export declare class Declined extends DurableError {}
/** The user dismissed the input request. */
export declare class Cancelled extends DurableError {}

/** A handler that breaks the rules of replay, or a test that lacks a response. */
export declare class TestFailure extends Error {}

/** Result of a call in a test. */
export interface TestOutcome {
  /** The text that the model reads, without emitted blocks. */
  readonly text: string;
  readonly structured: any;
  readonly isError: boolean;
  /** Keys of the recorded steps, in order. */
  readonly steps: readonly string[];
  readonly inputRequests: readonly string[];
  readonly segments: readonly any[];
  readonly statusMessages: readonly string[];
  /** Number of executions of each step, in the worst of all tried crashes. */
  readonly executed: { readonly [key: string]: number };
  readonly cancelled: boolean;
  /** `done`, or the error of the cleanup. */
  readonly cleanup: string | undefined;
}

/** A call in a test, with scripted responses. */
export interface TestCall {
  accept(key: Key, content?: unknown): this;
  decline(key: Key): this;
  cancel(key: Key): this;
  /** Another system delivers the value of an external event. */
  complete(key: Key, value: unknown): this;
  /** Scripts the members of a response, such as `{ result: … }` of sampling. */
  respond(key: Key, response: { readonly [member: string]: unknown }): this;
  /** Fails the test if a scripted response is not used. */
  strict(): this;
  /** Runs the call. The run is replayed at every input request, and once at its end. */
  run(): Promise<TestOutcome>;
  /** Runs the call and loses the run after `key` is recorded. */
  crashAfter(key: Key): Promise<TestOutcome>;
  /** Runs the call once without a crash, and once with a crash after each journal entry. The results must be equal. */
  crashAfterEach(): Promise<TestOutcome>;
  /** Runs the call and cancels its task after `key` is recorded. */
  cancelAfter(key: Key): Promise<TestOutcome>;
}

/**
 * Prepares a call of a tool in memory. Time is skipped. The test fails if the results of two runs differ, if a run uses
 * a key twice, or if a replay requests less.
 */
export declare function test<A>(tool: Tool<A>, args?: A): TestCall;
