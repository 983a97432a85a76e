/**
 * Diagnostics are data; `render.ts` is the one place that turns them into text.
 *
 * A user can cause an `SptError`; an `InternalError` is a bug of the compiler. Every module throws `SptError` with at
 * least a code and a message; modules that have source locations add spans, modules that have symbol tables add
 * candidates. Any other exception of a pass is converted to an `InternalError` that names the pass (`inPass`).
 */
import type { Details, Diagnostic, Problem } from './diagnostic-types.ts'
import type { render } from './render.ts'
import { callsOf, type Source, type Span, sourceOf } from './span.ts'

export type { Advice, Details, Diagnostic, Label, Problem, Refusal } from './diagnostic-types.ts'
export type { Source, Span } from './span.ts'

/** The first of each group of diagnostics with equal codes, messages and places, at the place of the last. */
function withoutRepeats(list: readonly Diagnostic[]): readonly Diagnostic[] {
  const key = ({ code, message, span }: Diagnostic) => [code, message, span?.source, span?.start, span?.end]
  return [...new Map(list.toReversed().map((d) => [`${key(d)}`, d])).values()].toReversed()
}

/** A diagnostic about a part of a callee names the calls, too. */
function withCalls(d: Diagnostic): Diagnostic {
  const { labels = [] } = d
  const calls = callsOf(d.span).filter((c) => labels.every((l) => l.span !== c))
  return calls.length === 0
    ? d
    : { ...d, labels: [...labels, ...calls.map((span) => ({ span, text: 'called here' }))] }
}

/** Folder of this package's modules, or of its bundles, as stack frames name it. */
const [, ownFolder] =
  /(?:\(|at )(\S*\/)(?:ast\/diagnostics\/diagnostic\.\w+:|(?<=dist\/lib\/)(?:chunks\/)?[^/\s]+\.js:)/.exec(
    new Error().stack ?? '',
  ) ?? []

/** Text of errors without source frames, for pages with a plan. */
let renderer: (...args: Parameters<typeof render>) => string = (diagnostics) =>
  diagnostics
    .map(
      ({ code, message, expected, hint }) =>
        `error[${code}]: ${message}${expected ? `\n  = expected: ${expected}` : ''}${hint ? `\n  = hint: ${hint}` : ''}`,
    )
    .join('\n\n')

/** The parser sets it, because source frames need programs. */
export function useRenderer(own: typeof render): void {
  renderer = own
}

/** An error that a user's program, data or call caused. */
export class SptError extends Error {
  override readonly name = 'SptError'
  /** Code of the first diagnostic, such as `bind/missing-size`. */
  declare readonly code: string
  declare readonly diagnostics: readonly Diagnostic[]
  /** The source texts of the spans, if the thrower has them; for renderers, and not printed with the error. */
  declare sources: ReadonlyMap<string, Source> | undefined

  constructor(diagnostics: Diagnostic | readonly Diagnostic[]) {
    const list = withoutRepeats([diagnostics].flat() as readonly Diagnostic[]).map(withCalls)
    super(list.map((d) => `${d.code}: ${d.message}`).join('\n'))
    const trace: { stack?: string } = {}
    Error.captureStackTrace?.(trace, new.target)
    // Node prints an uncaught error as its stack and its enumerable properties.
    Object.defineProperties(this, {
      code: { value: list[0]?.code },
      diagnostics: { value: list },
      sources: { value: undefined, writable: true },
      stack: { configurable: true, get: () => this.#text(trace.stack) },
    })
  }

  /** The diagnostics with their source frames, followed by the stack frames outside this package. */
  #text(stack = ''): string {
    const calls = stack
      .split('\n')
      .filter((line) => /^ +at /.test(line) && !(ownFolder && line.includes(ownFolder)))
    return [`${this.name}: ${renderer(this.diagnostics, this.sources ?? ownSources(this))}`, ...calls].join(
      '\n',
    )
  }
}

/**
 * A broken invariant of the compiler, never the user's fault. It is not an `SptError`, so callers that handle user
 * errors do not catch it, but it carries a diagnostic too.
 */
export class InternalError extends Error {
  override readonly name = 'InternalError'
  readonly code = 'compiler/internal'
  readonly diagnostics: readonly Diagnostic[]
  sources: SptError['sources']

  /** `pass`: the pass that failed. */
  constructor(message: string, pass?: string, cause?: unknown) {
    super(pass === undefined ? message : `${pass}: ${message}`, cause === undefined ? {} : { cause })
    this.diagnostics = [bugDiagnostic(this.message)]
  }
}

/** The diagnostic of an internal failure, which users can only report. */
export const bugDiagnostic = (message: string): Diagnostic => ({
  code: 'compiler/internal',
  message: `an error of the compiler, not of the program: ${message}`,
  hint: 'please report this line with the program, its schedule and the command or calls; without the schedule, or under another, it may work',
})

/** Runs a pass and adds the name to internal failures. */
export function inPass<T>(pass: string, work: () => T): T {
  try {
    return work()
  } catch (e) {
    if (e instanceof SptError || (e instanceof InternalError && e.cause !== undefined)) throw e
    const { message, name } = e instanceof Error ? e : { message: String(e), name: '' }
    throw new InternalError(e instanceof InternalError ? message : `${name}: ${message}`, pass, e)
  }
}

export function fail(diagnostic: Diagnostic): never {
  throw new SptError(diagnostic)
}

/** Throws a user error with the location if known, like `failWith` for long messages. */
export function failAs(code: string, problem: Problem & Pick<Diagnostic, 'span'>): never {
  throw new SptError({ code, ...problem })
}

/** Throws a user error about a place in a text, if the place is known. */
export function failAt(code: string, span: Span | undefined, problem: Problem): never {
  throw new SptError({ code, ...(span && { span }), ...problem })
}

/** Throws a user error with advice, and the location if known. */
export function failWith(code: string, message: string, details: Details): never {
  throw new SptError({ code, message, ...details })
}

/** The result of `work`, or the user error that it throws. */
export function resultOrError<T>(work: () => T): T | SptError {
  try {
    return work()
  } catch (e) {
    if (e instanceof SptError) return e
    throw e
  }
}

/** The result of asynchronous `work`, or the user error that rejects it. */
export async function valueOrError<T>(work: () => Promise<T>): Promise<T | SptError> {
  try {
    return await work()
  } catch (e) {
    if (e instanceof SptError) return e
    throw e
  }
}

/** The source texts of an error's spans, by name; the first one if several share a name. */
function ownSources({ diagnostics }: SptError): Map<string, Source> {
  const spans = diagnostics.flatMap(({ span, labels = [] }) => [span, ...labels.map((l) => l.span)])
  const found = spans.flatMap((s) => (s && sourceOf(s)) ?? [])
  return new Map(found.toReversed().map((s) => [s.name, s]))
}

/** Adds source texts to user errors of `work`. Texts that the error already has take precedence. */
export function withSources<T>(program: { readonly sources: ReadonlyMap<string, Source> }, work: () => T): T {
  const addSources = (e: unknown): never => {
    if (e instanceof SptError) {
      e.sources ??= ownSources(e)
      const { sources: ownTexts } = e
      const additional = [...program.sources].filter(([name]) => !ownTexts.has(name))
      if (additional.length > 0) e.sources = new Map([...ownTexts, ...additional])
    }
    throw e
  }
  try {
    const result = work()
    return result instanceof Promise ? (result.catch(addSources) as T) : result
  } catch (e) {
    return addSources(e)
  }
}

/** Checks an invariant of the compiler; a costly message is passed as a function. */
export function invariant(condition: unknown, message: string | (() => string)): asserts condition {
  if (!condition) throw new InternalError(typeof message === 'string' ? message : message())
}

/** For exhaustive switches. */
export function unreachable(value: never): never {
  throw new InternalError(`unreachable: ${JSON.stringify(value)}`)
}
