/** Formats available on the command line: formats of the package and of files (`--from`). */

import { SptFormat } from '../../api/inputs/format-values.ts'
import { chooseFormat } from '../../api/programs/format-lookup.ts'
import { type Diagnostic, type Source, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { packagedFormatFiles } from '../../io/package/package-formats.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import type { Call } from '../arguments/command.ts'
import { loadFile } from '../scheduled-kernel.ts'

export interface AvailableFormats {
  readonly formats: ReadonlyMap<string, AnyFormat>
  readonly sources: ReadonlyMap<string, Source>
}

/** A format of a file replaces a format of the same name in the package or in earlier files. */
export async function loadFormats(files: readonly string[], call: Call): Promise<AvailableFormats> {
  const formats = new Map<string, AnyFormat>()
  const sources = new Map<string, Source>()
  for (const path of [...packagedFormatFiles(), ...files]) {
    const program = await loadFile(path, call)
    for (const [name, format] of program.formats) formats.set(name, format)
    for (const [name, source] of program.sources ?? []) sources.set(name, source)
  }
  return { formats, sources }
}

/** The format given by a text, as after `as` in a schedule. */
export const formatOf = (text: string, { formats }: AvailableFormats): SptFormat => {
  const selected = chooseFormat(text.trim(), [], formats)
  return new SptFormat(selected.format, selected.args)
}

/** Source name of formats typed on the command line. */
const TYPED = 'format'

/** Adds sources to errors of `work`: the files, and the text typed on the command line. */
export function withFormatSources<T>(text: string, { sources }: AvailableFormats, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    const decorated = new SptError(error.diagnostics.map(withOption))
    decorated.sources = error.sources ?? new Map([...sources, [TYPED, { name: TYPED, text }]])
    throw decorated
  }
}

/** Replaces a hint to import a format, impossible on the command line, by `--from`. */
const withOption = (d: Diagnostic): Diagnostic =>
  /\/unknown-format$/.test(d.code) && (d.span?.source ?? TYPED) === TYPED && d.hint !== undefined
    ? {
        ...d,
        hint: 'formats of a file: --from FILE.spt, also of the package (--from sparsetile/kernels/NAME.spt)',
      }
    : d
