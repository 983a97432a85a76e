/** Collects the errors of a program, so that one run shows several. */
import { type Diagnostic, SptError } from '../../ast/diagnostic.ts'

const MAX_ERRORS = 50

export class Report {
  readonly #list: Diagnostic[] = []
  readonly #seen = new Set<string>()

  /** Records an error; the same words about the same place count once. Returns `null`, the poisoned result. */
  error(d: Diagnostic): null {
    const key = `${d.code} ${d.span?.source} ${d.span?.start} ${d.message}`
    if (!this.#seen.has(key)) this.#list.push(d)
    this.#seen.add(key)
    return null
  }

  get count(): number {
    return this.#list.length
  }

  /** Throws if anything was recorded: the first errors, in the order of the text. */
  finish(): void {
    if (this.#list.length === 0) return
    const place = (d: Diagnostic): number => d.span?.start ?? 0
    throw new SptError(this.#list.toSorted((a, b) => place(a) - place(b)).slice(0, MAX_ERRORS))
  }
}
