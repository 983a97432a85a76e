/** Errors of the runtimes for pages, which load no renderer of diagnostics. */

/** An error that a plan's inputs or device caused. `diagnostics` has the form of `SptError.diagnostics`. */
export class PlanError extends Error {
  override readonly name = 'PlanError'
  readonly diagnostics

  /** `code`: as documented in the error index, such as `bind/missing-size`. */
  constructor(code: string, message: string, expected?: string) {
    super(`${code}: ${message}${expected ? ` (expected: ${expected})` : ''}`)
    this.diagnostics = [{ code, message, expected }] as const
  }
}

export function failWith(code: string, message: string, expected?: string): never {
  throw new PlanError(code, message, expected)
}
