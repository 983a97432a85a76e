/**
 * Collection of the errors of a program, so that one run shows several. Functions of elaboration that have reported an
 * error return null, or false for a check.
 */
import { type Diagnostic, type Problem, type Span, SptError } from '../ast/diagnostics/diagnostic.ts'

const MAX_ERRORS = 50

export class Report {
  readonly #list: Diagnostic[] = []
  readonly #seen = new Set<string>()

  /** Records an error about a place in the text. Returns null, the poisoned result. */
  error(code: string, span: Span, problem: Problem): null {
    return this.add({ code, span, ...problem })
  }

  /** Records errors; the same message about the same place counts once. */
  add(...diagnostics: readonly Diagnostic[]): null {
    for (const d of diagnostics) {
      const key = `${d.code} ${d.span?.source} ${d.span?.start} ${d.message}`
      if (!this.#seen.has(key)) this.#list.push(d)
      this.#seen.add(key)
    }
    return null
  }

  get list(): readonly Diagnostic[] {
    return this.#list
  }

  get count(): number {
    return this.#list.length
  }

  /** Throws the first recorded errors, file by file in the order of the text; returns if no error was recorded. */
  finish(): void {
    if (this.#list.length === 0) return
    const sources = [...new Set(this.#list.map((d) => d.span?.source))]
    const file = (d: Diagnostic): number => sources.indexOf(d.span?.source)
    const place = (d: Diagnostic): number => d.span?.start ?? 0
    const order = this.#list.toSorted((a, b) => file(a) - file(b) || place(a) - place(b))
    throw new SptError(order.slice(0, MAX_ERRORS))
  }
}
