/** The error for unknown names in expressions over a frame. */
import { fail } from '../ast/diagnostics/diagnostic.ts'

/** Reports an unknown name. @throws SptError `format/unknown-name` */
export function unknownName(name: string, candidates: readonly string[]): never {
  return fail({
    code: 'format/unknown-name',
    message: `${name} is not a coordinate, size or table here`,
    lookup: { name, candidates },
    expected: `one of ${candidates.join(', ')}`,
    hint: 'a map uses coordinates, sizes and queries of the format',
  })
}
