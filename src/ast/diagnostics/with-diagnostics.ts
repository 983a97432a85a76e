/** User errors with changed diagnostics. */
import { type Diagnostic, resultOrError, SptError } from './diagnostic.ts'

/** The result of `work`, whose user error is thrown with changed diagnostics. */
export function withDiagnostics<T>(change: (d: Diagnostic) => Diagnostic, work: () => T): T {
  const result = resultOrError(work)
  if (!(result instanceof SptError)) return result
  const error = new SptError(result.diagnostics.map(change))
  error.sources = result.sources
  throw error
}
