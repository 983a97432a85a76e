/**
 * Validity of names that steps give to loops and buffers: a trace can be printed only if they are names of the
 * language.
 */
import { fail, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { show } from '../../ast/diagnostics/expect-argument.ts'
import { isName } from '../../ast/parse/parse.ts'

/** Checks the new names of a step. @throws SptError `schedule/bad-name` */
export function checkNewNames(step: unknown): void {
  const { kind, into, span } = (step ?? {}) as {
    readonly kind?: unknown
    readonly into?: unknown
    readonly span?: Span
  }
  for (const name of [into].flat()) {
    // Values that are not strings are rejected by the check of the step.
    if (typeof name !== 'string' || isName(name)) continue
    fail({
      code: 'schedule/bad-name',
      message: `${show(name)} is not a valid name for a result of ${String(kind)}`,
      ...(span ? { span } : {}),
      expected: 'a name: a letter or _, then letters, digits and _',
      ...(/^[a-z]+$/.test(name) ? { hint: 'this word is reserved; choose another name' } : {}),
    })
  }
}
