/** Diagnostics: errors, warnings and notes about a program, as data. */
import type { Span } from './span.ts'

export type Severity = 'error' | 'warning' | 'note'

export interface Label {
  readonly span: Span
  readonly text: string
}

export interface ProblemFields {
  /** Stable, `area/problem`: `parse/unexpected`, `check/unknown-name`, `schedule/not-nested`, `io/truncated`. */
  readonly code: string
  readonly severity?: Severity
  /** One sentence that states the problem, with the names involved. */
  readonly message: string
  readonly span?: Span
  /** Related source locations (a declaration, an earlier step). */
  readonly labels?: readonly Label[]
  /** Preformatted blocks, for example the current loops. */
  readonly notes?: readonly string[]
}

interface AdviceFields {
  /** The input that would have been accepted. */
  readonly expected: string
  /** The name that was looked up and the names that exist: the renderer adds "did you mean". */
  readonly lookup: { readonly name: string; readonly candidates: readonly string[] }
  /** A correction to try. */
  readonly hint: string
}

export interface Variants {
  /** The hint for the command line, if it differs: options instead of parameters of a call. */
  readonly commandHint?: string
}

/** Advice to the user: every diagnostic has at least one of these fields. */
export type Advice = Partial<AdviceFields> &
  (Pick<AdviceFields, 'expected'> | Pick<AdviceFields, 'lookup'> | Pick<AdviceFields, 'hint'>)

export type Diagnostic = ProblemFields & Advice & Variants

/** A diagnostic without code and location. */
export type Problem = Omit<ProblemFields, 'code' | 'span'> & Advice & Variants

/** A diagnostic without code and message; `message?: never` rejects a `Problem`, whose message would replace another. */
export type Details = Omit<ProblemFields, 'code' | 'message'> &
  Advice &
  Variants & { readonly message?: never }

/** A diagnostic without location, which a helper adds. */
export type Refusal = Pick<ProblemFields, 'code' | 'message'> & Advice
