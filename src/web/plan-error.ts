/** Errors of the runtimes for pages, which load no renderer of diagnostics. */

/** An error that a plan's inputs or device caused. `diagnostics` has the form of `SptError.diagnostics`. */
export class PlanError extends Error {
  override readonly name = 'PlanError'
  readonly diagnostics

  /** @param code - As documented in the error index, such as `bind/missing-size` */
  constructor(
    readonly code: string,
    message: string,
    expected?: string,
  ) {
    super(`${code}: ${message}${expected ? ` (expected: ${expected})` : ''}`)
    this.diagnostics = [{ code, message, expected }] as const
  }
}

export function failWith(code: string, message: string, expected?: string): never {
  throw new PlanError(code, message, expected)
}

/** The result of work on a plan, whose other errors come from fields that no compiler wrote. @throws PlanError `plan/malformed` */
export const reading = <T>(work: Promise<T>): Promise<T> =>
  work.catch((e: unknown) => {
    throw e instanceof PlanError ? e : new PlanError('plan/malformed', `a field of the plan: ${e}`)
  })
