/** Where the package has formats. Who can read its files says which of them has one: the compiler knows none by name. */
import { quotedPath } from './quoted-path.ts'

/** Files of the package that declare a format, as they are imported. */
type Find = (name: string) => readonly string[]

let find: Find = () => []

/** A host that has the package's files. */
export function readPackaged(reader: Find): void {
  find = reader
}

/** For those who look for a format. */
export function packagedFormat(name: string): string {
  const [file] = find(name)
  return file === undefined
    ? 'formats of the package are in files of its own: import "sparsetile/kernels/formats.spt" (those of several parts: formats-composed.spt, of tensors of any order: formats-tensors.spt)'
    : `${name} is a format of the package: import ${quotedPath(file)}`
}
