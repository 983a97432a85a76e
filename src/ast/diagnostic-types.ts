/** Diagnostics: errors, warnings and notes about a program, as data. */
import type { Span } from './span.ts'

export type Severity = 'error' | 'warning' | 'note'

export interface Label {
  readonly span: Span
  readonly text: string
}

interface Complaint {
  /** `room/what`, stable: `parse/unexpected`, `check/unknown-name`, `schedule/not-nested`, `io/truncated`. */
  readonly code: string
  readonly severity?: Severity
  /** One sentence: what is wrong, with the names involved. */
  readonly message: string
  readonly span?: Span
  /** Further places that matter (a declaration, an earlier step). */
  readonly labels?: readonly Label[]
  /** Preformatted blocks, such as the loops as they are now. */
  readonly notes?: readonly string[]
}

interface Leads {
  /** What would have been accepted here. */
  readonly expected: string
  /** The name that was looked up and the names that exist: the renderer adds "did you mean". */
  readonly lookup: { readonly name: string; readonly candidates: readonly string[] }
  /** What to try. */
  readonly hint: string
}

/** What leads on: at least one of these stands in every diagnostic, and helpers ask for it as well. */
export type Advice = Partial<Leads> & (Pick<Leads, 'expected'> | Pick<Leads, 'lookup'> | Pick<Leads, 'hint'>)

export type Diagnostic = Complaint & Advice

/** A diagnostic to which a helper adds where it is about. */
export type Refusal = Pick<Complaint, 'code' | 'message'> & Advice
