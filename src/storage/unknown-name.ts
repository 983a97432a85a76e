/** Refusal of names that an expression over a frame does not know. */
import { fail } from '../ast/diagnostic.ts'

/** @throws SptError `format/unknown-name` */
export function unknownName(name: string, candidates: readonly string[]): never {
  return fail({
    code: 'format/unknown-name',
    message: `${name} is not a coordinate, size or table here`,
    lookup: { name, candidates },
    expected: `one of ${candidates.join(', ')}`,
    hint: 'maps are over the coordinates, the sizes and what the format asks for',
  })
}
