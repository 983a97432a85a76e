/** Lookup of formats by name. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { packagedFormatHint } from '../../ast/imports/resolve-path.ts'
import { parseFormatExpression } from '../../elaborate/index.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import { expectArgument, isRecord, nameText } from '../inputs/argument-checks.ts'

/**
 * Returns a format by name, as written in a schedule, or as a value of another program, with its arguments.
 * @throws SptError `api/unknown-format`, `parse/…`, `check/…`
 */
export function chooseFormat(
  format: string | AnyFormat,
  args: readonly (number | string)[],
  formats: ReadonlyMap<string, AnyFormat>,
): { readonly format: AnyFormat; readonly args: readonly (number | string)[] } {
  for (const a of args)
    expectArgument(
      typeof a === 'number' || (typeof a === 'string' && a !== ''),
      'an argument of a format',
      a,
      'a number, or the name of a list or set',
    )
  const known = typeof format === 'string' ? formats.get(format) : format
  if (typeof format === 'string' && !known && !/^\w*$/.test(format)) {
    const written = parseFormatExpression(format, formats)
    return { format: written.format, args: [...written.args, ...args] }
  }
  if (known && isRecord(known) && Array.isArray(known.params)) return { format: known, args }
  const candidates = [...formats.keys()]
  return failWith('api/unknown-format', `there is no format ${nameText(format)}`, {
    lookup: { name: nameText(format), candidates },
    ...(candidates.length > 0 && { expected: `one of ${candidates.join(', ')}` }),
    hint: packagedFormatHint(nameText(format)),
  })
}
