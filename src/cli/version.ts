import { version } from '../io/package/package.ts'
import type { Io } from './output/io.ts'

/** Prints the version if the first word requests it, without loading the commands. */
export function handleVersionFlag(first: string | undefined, io: Io): boolean {
  if (first !== '-v' && first !== '--version') return false
  io.out(`sparsetile ${version()}\n`)
  return true
}
