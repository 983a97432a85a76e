/** Names that steps give to loops and buffers: those that a text can have, so that every trace is one. */
import { fail, type Span } from '../ast/diagnostic.ts'
import { show } from '../ast/expect-argument.ts'
import { isName } from '../ast/parse.ts'

/** @throws SptError `schedule/bad-name` */
export function checkNewNames(step: unknown): void {
  const { kind, into, span } = (step ?? {}) as {
    readonly kind?: unknown
    readonly into?: unknown
    readonly span?: Span
  }
  for (const name of [into].flat()) {
    // What is no text is refused as no step.
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
