/** Files whose names do not say what they are. */
import { fail } from '../ast/diagnostic.ts'

/** Throws `io/unknown-extension`. */
export function unknownEnding(name: string, endings: readonly string[], action: string): never {
  return fail({
    code: 'io/unknown-extension',
    message: `cannot tell from '${name}' what kind of file to ${action}`,
    expected: endings.join(' '),
  })
}
