/** Generated programs as they are read: the formats before each are always the same, and read once. */
import { parseProgram, type SptProgram } from '../../src/api/programs/program.ts'
import type { AnyFormat } from '../../src/ir/formats/format.ts'
import { FORMATS } from './program-parts.ts'

let standard: ReadonlyMap<string, AnyFormat> | undefined

/** The text without the formats that steps alone would name. */
export const withoutFormats = (text: string): string =>
  text.startsWith(FORMATS) ? text.slice(FORMATS.length) : text

/** The program of a sample, and all formats that its text has. @throws SptError what `parseProgram` does */
export function readSample({ text }: { readonly text: string }): {
  readonly program: SptProgram
  readonly formats: ReadonlyMap<string, AnyFormat>
} {
  const own = withoutFormats(text)
  const program = parseProgram(own)
  if (own === text) return { program, formats: program.formats }
  standard ??= parseProgram(FORMATS).formats
  return { program, formats: new Map([...standard, ...program.formats]) }
}
