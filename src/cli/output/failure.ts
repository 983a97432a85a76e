/** Reports a thrown value on standard error or as JSON, and returns the exit code. */
import type { Advice, Diagnostic, Span } from '../../ast/diagnostics/diagnostic.ts'
import { bugDiagnostic, InternalError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { escapeLine, escapeText, render } from '../../ast/diagnostics/render.ts'
import { sourceOf } from '../../ast/diagnostics/span.ts'
import { suggestion } from '../../ast/diagnostics/suggest.ts'
import type { Io } from './io.ts'

export const EXIT = { ok: 0, failed: 1, usage: 2 } as const

/** Hints in terms of the command line, which replace the library's own by code. */
const HINTS: Readonly<Record<string, string>> = {
  'api/unknown-kernel': 'choose one with --kernel NAME',
  'bind/unknown-size': '--size takes the sizes and scalars of the kernel',
  'prune/sparsity': 'this is --sparsity',
  'prune/layers':
    'layers are tensors of F64, F32, F16 or BF16 with two dimensions or more; --exclude leaves some out',
  'bind/unknown-name': '--bind takes the buffers and axes of the kernel, and the inputs of its formats',
}

/** Hints that replace an existing hint of the library; errors of these codes without a hint get none. */
const REPLACED_HINTS: Readonly<Record<string, string>> = {
  'prune/delta': 'choose a smaller --delta, or --pattern ew',
}

const withCommandHint = (d: Diagnostic): Diagnostic => {
  const hint = d.commandHint ?? HINTS[d.code] ?? (d.hint === undefined ? undefined : REPLACED_HINTS[d.code])
  return hint === undefined ? d : { ...d, hint }
}

type Failure = Pick<SptError, 'diagnostics' | 'sources'>

/** `isFinal`: nothing follows, so the error index is mentioned. */
export function showDiagnostics(error: Failure, io: Io, isFinal = false): void {
  io.err(`${render(error.diagnostics.map(withCommandHint), error.sources ?? [], { color: io.color.err })}\n`)
  // On terminals only: a program that parses the output has the code.
  const [first] = error.diagnostics
  if (io.color.err && first && isFinal) io.err(`\nspt explain ${first.code} explains this error.\n`)
}

/** A failure as JSON: the first diagnostic with its location, and a list of all diagnostics. */
export function failureJson(error: unknown): string {
  const problems = problemsOf(error)
  // JSON.stringify does not escape all control characters.
  return `${escapeText(JSON.stringify({ error: { ...problems[0], diagnostics: problems } }))}\n`
}

interface Problem {
  readonly code: string
  readonly message: string
  readonly file?: string
  /** From 1. */
  readonly line?: number
  readonly column?: number
  /** Characters from the beginning of the file. */
  readonly span?: { readonly start: number; readonly end: number }
  readonly expected?: string
  readonly hint?: string
  readonly candidates?: readonly string[]
}

function problemsOf(error: unknown): readonly Problem[] {
  const problem = (code: string, { message, expected, hint, lookup }: UsageProblem): Problem => ({
    code,
    message,
    ...(expected !== undefined && { expected }),
    ...(hint !== undefined && { hint }),
    ...(lookup && { candidates: lookup.candidates }),
  })
  if (isFailure(error))
    return error.diagnostics.map(withCommandHint).map((d) => ({
      ...problem(d.code, d),
      ...(d.span && locationOf(d.span, sourceOf(d.span, error.sources)?.text)),
    }))
  if (error instanceof UsageError) return [problem('usage', error.problem)]
  if (isOutOfMemory(error))
    return [{ code: 'run/out-of-memory', message: NO_MEMORY, hint: 'use smaller sizes' }]
  return [bugDiagnostic(errorText(error))]
}

const errorText = (error: unknown): string =>
  (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).split('\n')[0]!

export const isFailure = (error: unknown): error is SptError | InternalError =>
  error instanceof SptError || error instanceof InternalError

function locationOf({ source, start, end }: Span, text: string | undefined): Partial<Problem> {
  const location = { file: source, span: { start, end } }
  if (text === undefined) return location
  const lines = text.slice(0, start).split('\n')
  return { ...location, line: lines.length, column: lines.at(-1)!.length + 1 }
}

const NO_MEMORY = 'this machine has no memory for that'
const isOutOfMemory = (error: unknown): boolean =>
  error instanceof RangeError && /allocation|array length|buffer/i.test(error.message)

export function showFailure(error: unknown, io: Io): number {
  if (error instanceof UsageError) {
    io.err(`${renderUsage(error.problem)}\n`)
    return EXIT.usage
  }
  if (isOutOfMemory(error)) {
    io.err(`error[run/out-of-memory]: ${NO_MEMORY}\n  = hint: use smaller sizes\n`)
    return EXIT.failed
  }
  showDiagnostics(isFailure(error) ? error : new SptError(bugDiagnostic(errorText(error))), io, true)
  if (io.env.SPT_DEBUG === '1' && error instanceof Error && !(error instanceof SptError))
    io.err(stackTrace(error))
  return EXIT.failed
}

const stackTrace = (error: Error): string =>
  `${error.stack}\n${error.cause instanceof Error ? `caused by ${stackTrace(error.cause)}` : ''}`

type UsageProblem = Pick<Diagnostic, 'message'> &
  Advice & {
    /** The command it is about. */
    readonly command?: string | undefined
  }

/** An error of the command line, with exit code 2; all other errors that users cause have 1. */
export class UsageError extends Error {
  override readonly name = 'UsageError'

  constructor(readonly problem: UsageProblem) {
    super(problem.message)
  }
}

export function rejectUsage(problem: UsageProblem): never {
  throw new UsageError(problem)
}

function renderUsage({ message, command, expected, lookup, hint }: UsageProblem): string {
  const name = command === undefined ? 'spt' : `spt ${command}`
  const proposal = lookup && suggestion(lookup, !expected && !hint)
  const lines = [
    `${name}: ${escapeLine(message)}`,
    ...(expected === undefined ? [] : [`  expected: ${escapeLine(expected)}`]),
    ...(proposal ? [`  ${proposal.title}: ${proposal.text}`] : []),
    ...(hint === undefined ? [] : [`  hint: ${escapeLine(hint)}`]),
    `  help: ${name} --help`,
  ]
  return escapeText(lines.join('\n'))
}
