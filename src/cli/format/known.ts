/** Formats available on the command line: those of the package, and those of files. */
import { chooseFormat } from '../../api/choose-format.ts'
import { SptFormat } from '../../api/format-values.ts'
import { type Diagnostic, type Source, SptError } from '../../ast/diagnostic.ts'
import { packagedFormatFiles } from '../../io/package-formats.ts'
import type { AnyFormat } from '../../ir/format.ts'
import type { Call } from '../command.ts'
import { loadFile } from '../scheduled-kernel.ts'

export interface KnownFormats {
  readonly formats: ReadonlyMap<string, AnyFormat>
  readonly sources: ReadonlyMap<string, Source>
}

/** A file's format hides that of the same name in the package, and in files before it. */
export async function knownFormats(files: readonly string[], call: Call): Promise<KnownFormats> {
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
export const formatOf = (text: string, { formats }: KnownFormats): SptFormat => {
  const chosen = chooseFormat(text.trim(), [], formats)
  return new SptFormat(chosen.format, chosen.args)
}

/** Source name of formats typed on the command line. */
const TYPED = 'format'

/** Attaches sources to errors: files, and the text typed on the command line. */
export function withTexts<T>(text: string, { sources }: KnownFormats, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    const told = new SptError(error.diagnostics.map(withOption))
    told.sources = error.sources ?? new Map([...sources, [TYPED, { name: TYPED, text }]])
    throw told
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
