/** Lookup of the package's formats. The host reads the package's files: the compiler has no built-in format names. */
import { quotedPath } from './quoted-path.ts'

/** Returns the import paths of package files that declare a format. */
type FormatLookup = (name: string) => readonly string[]

let lookup: FormatLookup = () => []

/** Registers the lookup; called by hosts that have the package's files. */
export function readPackaged(reader: FormatLookup): void {
  lookup = reader
}

/** A hint for an unknown format: the package file to import. */
export function packagedFormatHint(name: string): string {
  const [file] = lookup(name)
  return file === undefined
    ? 'formats of the package are in files of its own: import "sparsetile/kernels/formats.spt" (those of several parts: formats-composed.spt, of tensors of any order: formats-tensors.spt)'
    : `${name} is a format of the package: import ${quotedPath(file)}`
}
